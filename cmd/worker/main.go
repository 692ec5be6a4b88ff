// Command worker delivers scheduled pushes.
package main

import (
	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/cli"
)

type worker struct{ cli.Flags }

func (worker) Run() error { return app.Service((*app.App).RunWorker) }

func main() {
	cli.Main(&worker{}, "worker",
		"sendquota's worker: puts pushes into the queue when their time comes near, delivers them, and cleans up after the lost and the late. It runs until SIGTERM. "+
			"Settings come from the environment: DATABASE_URL, REDIS_URL, SENDQUOTA_CONFIG, SENDQUOTA_LOG_LEVEL, SENDQUOTA_METRICS_ADDR; see docs/settings.md.")
}

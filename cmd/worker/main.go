// Command worker delivers scheduled pushes.
package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/sendquota/sendquota/internal/app"
)

type worker struct{}

func (worker) Run() error { return app.Service((*app.App).RunWorker) }

func main() {
	program := kong.Parse(&worker{}, kong.Name("worker"), kong.Description(
		"sendquota's worker: puts pushes into the queue when their time comes near, delivers them, and cleans up after the lost and the late. It runs until SIGTERM. "+
			"Settings come from the environment: DATABASE_URL, REDIS_URL, SENDQUOTA_CONFIG, SENDQUOTA_LOG_LEVEL, SENDQUOTA_METRICS_ADDR; see the README."))
	if err := program.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

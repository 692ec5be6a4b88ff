package programs

import (
	"os"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/cli"
	"github.com/sendquota/sendquota/internal/config"
)

// Worker runs the program that delivers scheduled pushes.
func Worker() {
	var commands struct {
		cli.Flags
		Work        work         `cmd:"" default:"1" help:"Work until SIGTERM (the default)."`
		Healthcheck workerHealth `cmd:"" help:"Check whether the worker on this machine is alive, at SENDQUOTA_METRICS_ADDR; for containers."`
	}
	cli.Main(&commands, "worker",
		"sendquota's worker: wakes, delivers, retries and expires pushes, runs campaigns and schedules, and audits. It runs until SIGTERM. "+
			"Settings come from the environment: DATABASE_URL, REDIS_URL, SENDQUOTA_SEAL_KEY, SENDQUOTA_CONFIG, SENDQUOTA_LOG_LEVEL, SENDQUOTA_METRICS_ADDR; see docs/settings.md.")
}

type work struct{}

func (work) Run() error { return app.Service((*app.App).RunWorker) }

type workerHealth struct{ healthcheck }

// Run succeeds if the worker answers at the address of its metrics.
func (h workerHealth) Run() error {
	cfg, err := config.LoadDev(os.Environ()) // only the address matters
	if err != nil {
		return err
	}
	return h.ask(config.MetricsAddrVariable, cfg.MetricsAddr)
}

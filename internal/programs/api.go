package programs

import (
	"os"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/cli"
	"github.com/sendquota/sendquota/internal/config"
)

// API runs the program that serves the REST API.
func API() {
	var commands struct {
		cli.Flags
		Serve       serve     `cmd:"" default:"1" help:"Serve the API until SIGTERM (the default)."`
		Healthcheck apiHealth `cmd:"" help:"Check whether the API on this machine is alive; for containers."`
	}
	cli.Main(&commands, "api",
		"sendquota's REST API. Settings come from the environment: DATABASE_URL, REDIS_URL, SENDQUOTA_ADDR, SENDQUOTA_SEAL_KEY, SENDQUOTA_CONFIG, SENDQUOTA_LOG_LEVEL; see docs/settings.md.")
}

type serve struct{}

func (serve) Run() error { return app.Service((*app.App).RunAPI) }

type apiHealth struct{ healthcheck }

// Run succeeds if the API answers on its port.
func (h apiHealth) Run() error {
	cfg, err := config.LoadDev(os.Environ()) // only the address matters
	if err != nil {
		return err
	}
	return h.ask(config.AddrVariable, cfg.Addr)
}

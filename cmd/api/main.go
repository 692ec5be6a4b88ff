// Command api serves sendquota's REST API.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/cli"
	"github.com/sendquota/sendquota/internal/config"
)

var commands struct {
	cli.Flags
	Serve       serve       `cmd:"" default:"1" help:"Serve the API until SIGTERM (the default)."`
	Healthcheck healthcheck `cmd:"" help:"Ask the API on this machine whether it is alive; for containers."`
}

func main() {
	cli.Main(&commands, "api",
		"sendquota's REST API. Settings come from the environment: DATABASE_URL, REDIS_URL, SENDQUOTA_ADDR, SENDQUOTA_CONFIG, SENDQUOTA_LOG_LEVEL; see docs/settings.md.")
}

type serve struct{}

func (serve) Run() error { return app.Service((*app.App).RunAPI) }

type healthcheck struct{}

// Run succeeds if the API answers on the configured port.
func (healthcheck) Run() error {
	cfg, err := config.LoadDev(os.Environ()) // only the address matters
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return fmt.Errorf("SENDQUOTA_ADDR: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	client := http.Client{Timeout: 3 * time.Second}
	res, err := client.Get("http://" + net.JoinHostPort(host, port) + "/healthz")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the API answered %s", res.Status)
	}
	return nil
}

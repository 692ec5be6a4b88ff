package programs

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

// healthcheck checks the program on this machine. The image has no other program for it.
type healthcheck struct {
	Ready bool `help:"Check whether it is ready: /readyz instead of /healthz."`
}

// ask returns an error unless the program at addr, the value of a variable, answers 200.
func (h healthcheck) ask(variable, addr string) error {
	if addr == "" {
		return fmt.Errorf("%s is not set; set it to the address of the program", variable)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	path := "/healthz"
	if h.Ready {
		path = "/readyz"
	}
	client := http.Client{Timeout: 3 * time.Second}
	res, err := client.Get("http://" + net.JoinHostPort(host, port) + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", path, res.Status)
	}
	return nil
}

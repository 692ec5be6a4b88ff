package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// HTTP has the settings of the programs' servers.
type HTTP struct {
	MaxConnections int           // at least 1; beyond it idle connections are closed, and new ones wait
	Drain          time.Duration // how long the API goes on after a signal to stop
}

func (h *HTTP) settings(t *strictyaml.Table) {
	t.Int("max_connections", "10000", "connections at a time, 1 to 1000000; beyond it the longest idle ones are closed, and new ones wait", &h.MaxConnections, 1, 1_000_000)
	t.Duration("drain", "5s", "how long the API still takes requests after SIGTERM, with /readyz 503 and Connection: close in its answers, at most 10 minutes; 0s: it stops at once", &h.Drain, 0, 10*time.Minute)
}

package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Database has the settings of each program's connections to Postgres.
type Database struct {
	MaxConnections  int           // for changes
	ReadConnections int           // for tenants' reads
	ReadTimeout     time.Duration // for one statement that reads
}

func (d *Database) settings(t *strictyaml.Table) {
	t.Int("max_connections", "16", "connections of each program to Postgres for changes, 8 to 1000", &d.MaxConnections, 8, 1000)
	t.Int("read_connections", "8", "connections of each program to Postgres for tenants' reads; one tenant has a quarter of them at a time, 1 to 1000", &d.ReadConnections, 1, 1000)
	t.Duration("read_timeout", "3s", "time-out of one statement that reads, 100 milliseconds to 1 minute", &d.ReadTimeout, 100*time.Millisecond, time.Minute)
}

// Redis has the number of each program's connections to Redis, or to each node of a cluster.
type Redis struct{ MaxConnections int }

func (r *Redis) settings(t *strictyaml.Table) {
	t.Int("max_connections", "64", "connections of each program's queue to Redis, or to each node of a cluster, 8 to 10000; each of four other parts has as many, at most 16", &r.MaxConnections, 8, 10_000)
}

// HTTP has the settings of the programs' servers.
type HTTP struct {
	MaxConnections int           // at least 1; beyond it idle connections are closed, and new ones wait
	Drain          time.Duration // how long the API goes on after a signal to stop
}

func (h *HTTP) settings(t *strictyaml.Table) {
	t.Int("max_connections", "10000", "connections at a time, 1 to 1000000; beyond it the longest idle ones are closed, and new ones wait", &h.MaxConnections, 1, 1_000_000)
	t.Duration("drain", "5s", "how long the API still takes requests after SIGTERM, with /readyz 503 and Connection: close in its answers, at most 10 minutes; 0s: it stops at once", &h.Drain, 0, 10*time.Minute)
}

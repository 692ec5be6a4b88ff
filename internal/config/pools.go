package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Database is how many connections each program has to Postgres, and what they may do.
type Database struct {
	MaxConnections  int           // for what changes something
	ReadConnections int           // for what tenants read
	ReadTimeout     time.Duration // for one statement that reads
}

func (d *Database) settings(t *strictyaml.Table) {
	t.Int("max_connections", "16", "connections of each program to Postgres, for what changes something, 8 to 1000", &d.MaxConnections, 8, 1000)
	t.Int("read_connections", "8", "and for what tenants read; one tenant has a quarter of them at a time, 1 to 1000", &d.ReadConnections, 1, 1000)
	t.Duration("read_timeout", "3s", "for how long Postgres may work on one statement that reads, 100 milliseconds to 1 minute", &d.ReadTimeout, 100*time.Millisecond, time.Minute)
}

// Redis is how many connections each program has to Redis, or to each node of a cluster.
type Redis struct{ MaxConnections int }

func (r *Redis) settings(t *strictyaml.Table) {
	t.Int("max_connections", "64", "connections of each program's queue to Redis, or to each node of a cluster, 8 to 10000; each of four other parts has as many, at most 16", &r.MaxConnections, 8, 10_000)
}

package config

import "time"

// Database is how many connections each program has to Postgres, and what they may do.
type Database struct {
	MaxConnections  int           // for what changes something
	ReadConnections int           // for what tenants read
	ReadTimeout     time.Duration // for one statement that reads
}

func (d *Database) fields() []field {
	return []field{
		{"max_connections", "16", "connections of each program to Postgres, for what changes something, 8 to 1000", integer(&d.MaxConnections, 8, 1000)},
		{"read_connections", "8", "and for what tenants read; one tenant has a quarter of them at a time, 1 to 1000", integer(&d.ReadConnections, 1, 1000)},
		{"read_timeout", "3s", "for how long Postgres may work on one statement that reads, 100ms to 1m", duration(&d.ReadTimeout, 100*time.Millisecond, time.Minute)},
	}
}

// Redis is how many connections each program has to Redis, or to each node of a
// cluster.
type Redis struct{ MaxConnections int }

func (r *Redis) fields() []field {
	return []field{
		{"max_connections", "64", "connections of each program's queue to Redis, or to each node of a cluster, 8 to 10000; each of four other parts has as many, at most 16", integer(&r.MaxConnections, 8, 10_000)},
	}
}

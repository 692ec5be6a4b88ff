package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Delivery has the settings of workers.
type Delivery struct {
	Concurrency int           // pushes that one worker delivers at the same time
	Lease       time.Duration // an attempt without an end counts as lost after this time
	DefaultTTL  time.Duration // how long after its send time a push without an expiry expires
	MaxHorizon  time.Duration // how far ahead a send may be scheduled
	Lanes       int           // parts of all recipients; one worker at a time owns a lane
	Queues      int           // asynq queues for the lanes' wake-ups
	Horizon     time.Duration // how long before its time a push is put into its queue

	ArmLease      time.Duration // how long a push may be due before a worker finds it without a wake-up
	RedisPatience time.Duration // how long Redis may be away before workers poll Postgres

	AuditInterval time.Duration // how often the workers together audit recent sends; 0: never
}

func (d *Delivery) settings(t *strictyaml.Table) {
	t.Int("concurrency", "256", "pushes that one worker delivers at the same time, 1 to 10000", &d.Concurrency, 1, 10_000)
	t.Duration("lease", "60s", "an attempt without an end counts as lost after this time, 100 milliseconds or more", &d.Lease, 100*time.Millisecond, forever)
	t.Duration("default_ttl", "24h", "how long after its send time a push without an expiry expires", &d.DefaultTTL, 1, forever)
	t.Duration("max_horizon", "8760h", "how far ahead a send may be scheduled", &d.MaxHorizon, 1, forever)
	t.Int("lanes", "4", "parts of all recipients, each with its own transactions and owned by one worker at a time; a power of two, 1 to 256; 256 is for a database spread over servers", &d.Lanes, 1, 256)
	t.Check(func(p strictyaml.Node) {
		if d.Lanes&(d.Lanes-1) != 0 {
			p.Child("lanes").BadValue("must be a power of two: 1, 2, 4, 8, 16, 32, 64, 128 or 256")
		}
	})
	t.Int("queues", "1", "queues for the lanes' wake-ups, each in one slot of a Redis cluster, 1 to 64", &d.Queues, 1, 64)
	t.Duration("horizon", "90s", "how long before its time a wake-up for a push is put into a queue, 1 second or more", &d.Horizon, time.Second, forever)
	t.Duration("arm_lease", "60s", "how long a push may be due before a worker finds it without a wake-up, 1 second or more", &d.ArmLease, time.Second, forever)
	t.Duration("redis_patience", "15s", "how long Redis may be away before workers poll Postgres, 1 second or more", &d.RedisPatience, time.Second, forever)
	t.Duration("audit_interval", "15m", "how often the workers together audit recent sends; 0s: never", &d.AuditInterval, 0, forever)
}

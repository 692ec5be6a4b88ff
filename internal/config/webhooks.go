package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Webhooks says how tenants are told what becomes of their pushes.
type Webhooks struct {
	MaxPerTenant          int
	Timeout               time.Duration // of one attempt
	DisableAfter          time.Duration // an endpoint that has failed for so long is switched off
	Retention             time.Duration // how long deliveries are kept
	AllowPrivateAddresses bool          // also to addresses that are not public, such as loopback
}

func (w *Webhooks) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "20", "webhooks that a tenant may have, 0 to 1000", &w.MaxPerTenant, 0, 1000)
	t.Duration("timeout", "10s", "of one attempt to tell a webhook, 100 milliseconds to 1 minute", &w.Timeout, 100*time.Millisecond, time.Minute)
	t.Duration("disable_after", "72h", "an endpoint that has failed for so long, ten times at least, is switched off", &w.DisableAfter, 1, forever)
	t.Duration("retention", "168h", "how long deliveries to webhooks are kept, to be looked at and replayed, 2 days or more", &w.Retention, 48*time.Hour, forever)
	t.Bool("allow_private_addresses", "false", "whether webhooks may go to loopback and private networks", &w.AllowPrivateAddresses)
}

package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Webhooks has the settings of tenants' webhooks.
type Webhooks struct {
	MaxPerTenant          int
	Timeout               time.Duration // of one attempt
	DisableAfter          time.Duration // an endpoint is switched off after failing for this time
	Retention             time.Duration // how long deliveries are kept
	AllowPrivateAddresses bool          // permits addresses that are not public, such as loopback
}

func (w *Webhooks) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "20", "maximum number of webhooks of a tenant, 0 to 1000", &w.MaxPerTenant, 0, 1000)
	t.Duration("timeout", "10s", "time-out of one request to a webhook, 100 milliseconds to 1 minute", &w.Timeout, 100*time.Millisecond, time.Minute)
	t.Duration("disable_after", "72h", "an endpoint is switched off after failing for this time, and at least ten times", &w.DisableAfter, 1, forever)
	t.Duration("retention", "168h", "how long deliveries to webhooks are kept, for lists and replays, 2 days or more", &w.Retention, 48*time.Hour, forever)
	t.Bool("allow_private_addresses", "false", "whether webhooks may connect to loopback and private networks", &w.AllowPrivateAddresses)
}

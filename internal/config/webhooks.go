package config

import "time"

// Webhooks says how tenants are told what becomes of their pushes.
type Webhooks struct {
	MaxPerTenant          int
	Timeout               time.Duration // of one attempt
	DisableAfter          time.Duration // an endpoint that has failed for so long is switched off
	Retention             time.Duration // how long deliveries are kept
	AllowPrivateAddresses bool          // also to addresses that are not public, such as loopback
}

func (w *Webhooks) fields() []field {
	return []field{
		{"max_per_tenant", "20", "webhooks that a tenant may have, 0 to 1000", integer(&w.MaxPerTenant, 0, 1000)},
		{"timeout", "10s", "of one attempt to tell a webhook, 100ms to 1m", duration(&w.Timeout, 100*time.Millisecond, time.Minute)},
		{"disable_after", "72h", "an endpoint that has failed for so long, ten times at least, is switched off", duration(&w.DisableAfter, 1, forever)},
		{"retention", "168h", "how long deliveries to webhooks are kept, to be looked at and replayed, 48h or more", duration(&w.Retention, 48*time.Hour, forever)},
		{"allow_private_addresses", "false", "whether webhooks may go to loopback and private networks", boolean(&w.AllowPrivateAddresses)},
	}
}

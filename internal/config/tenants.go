package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// manyBytes is the maximum number of bytes that a cap may allow.
const manyBytes = 1_000_000_000_000_000

// TenantCaps are the caps of every tenant without its own. 0: no cap.
type TenantCaps struct {
	PendingPushes    int // pushes that are scheduled or being sent
	RecipientsPerDay int // distinct recipients of pushes with a send time on one UTC day
	AudienceBytes    int // size of the stored audiences
}

func (c *TenantCaps) settings(t *strictyaml.Table) {
	t.Int("pending_pushes", "0", "maximum number of pushes of one tenant that are scheduled or being sent, to 1000000000; 0: no maximum", &c.PendingPushes, 0, manyPerSpan)
	t.Int("recipients_per_day", "0", "maximum number of recipients of one tenant's pushes on one day of UTC, to 1000000000; 0: no maximum", &c.RecipientsPerDay, 0, manyPerSpan)
	t.Int("audience_bytes", "10737418240", "maximum size of all audiences of one tenant, in bytes, to 1000000000000000; 0: no maximum", &c.AudienceBytes, 0, manyBytes)
}

// Campaigns bounds the campaigns of tenants.
type Campaigns struct {
	MaxPerTenant     int // campaigns that have not ended
	MaxAudience      int // recipients of a campaign
	MaxAudienceBytes int // size of the lines of an audience
}

func (c *Campaigns) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "1000", "maximum number of campaigns of a tenant that have not ended, with drafts, 0 to 100000", &c.MaxPerTenant, 0, 100_000)
	t.Int("max_audience", "5000000", "maximum number of recipients of a campaign, 1 to 100000000", &c.MaxAudience, 1, 100_000_000)
	t.Int("max_audience_bytes", "1073741824", "maximum size of an audience as it is stored, in bytes: recipient, address, and variables with their names; 1 to 1000000000000000", &c.MaxAudienceBytes, 1, manyBytes)
}

// Schedules bounds the schedules of tenants.
type Schedules struct{ MaxPerTenant int }

func (s *Schedules) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "25000", "maximum number of schedules of a tenant, 0 to 1000000", &s.MaxPerTenant, 0, 1_000_000)
}

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

// APIKeys bounds the keys that tenants create over REST. The operator's tool has no bound.
type APIKeys struct{ MaxPerTenant int }

func (k *APIKeys) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "100", "maximum number of live API keys of a tenant; beyond it POST /v1/keys is refused, 1 to 10000", &k.MaxPerTenant, 1, 10_000)
}

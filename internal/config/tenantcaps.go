package config

import "github.com/sendquota/sendquota/internal/strictyaml"

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

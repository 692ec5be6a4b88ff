package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// manyBytes is the most bytes that a cap may allow.
const manyBytes = 1_000_000_000_000_000

// TenantCaps bound what each tenant may have at a time, unless the operator has set others for it. 0: no cap.
type TenantCaps struct {
	PendingPushes    int // pushes that are scheduled or being sent
	RecipientsPerDay int // distinct recipients of pushes whose send time lies on one UTC day
	AudienceBytes    int // of the audiences that are kept
}

func (c *TenantCaps) settings(t *strictyaml.Table) {
	t.Int("pending_pushes", "0", "pushes of one tenant that may be scheduled or being sent at a time, to 1000000000; 0: any number", &c.PendingPushes, 0, manyPerSpan)
	t.Int("recipients_per_day", "0", "recipients to whom one tenant may have pushes on one day of UTC, to 1000000000; 0: any number", &c.RecipientsPerDay, 0, manyPerSpan)
	t.Int("audience_bytes", "10737418240", "bytes that the audiences of one tenant may have together, to 1000000000000000; 0: any number", &c.AudienceBytes, 0, manyBytes)
}

package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// Campaigns bounds the campaigns of tenants.
type Campaigns struct {
	MaxPerTenant     int // that have not ended
	MaxAudience      int // recipients
	MaxAudienceBytes int // of their lines
}

func (c *Campaigns) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "1000", "campaigns that a tenant may have that have not ended, drafts included, 0 to 100000", &c.MaxPerTenant, 0, 100_000)
	t.Int("max_audience", "5000000", "recipients that a campaign may have, 1 to 100000000", &c.MaxAudience, 1, 100_000_000)
	t.Int("max_audience_bytes", "1073741824", "bytes that the lines of an audience may have, as they are kept: recipient, address, and variables with their names; 1 to 1000000000000000", &c.MaxAudienceBytes, 1, manyBytes)
}

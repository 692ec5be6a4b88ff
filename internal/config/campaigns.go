package config

import "github.com/sendquota/sendquota/internal/strictyaml"

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

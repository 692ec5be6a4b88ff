package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// Schedules bounds the pushes that tenants have sent again and again.
type Schedules struct{ MaxPerTenant int }

func (s *Schedules) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "25000", "schedules that a tenant may have, 0 to 1000000", &s.MaxPerTenant, 0, 1_000_000)
}

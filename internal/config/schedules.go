package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// Schedules bounds the schedules of tenants.
type Schedules struct{ MaxPerTenant int }

func (s *Schedules) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "25000", "maximum number of schedules of a tenant, 0 to 1000000", &s.MaxPerTenant, 0, 1_000_000)
}

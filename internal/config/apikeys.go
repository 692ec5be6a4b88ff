package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// APIKeys bounds the keys that tenants create over REST. The operator's tool has no bound.
type APIKeys struct{ MaxPerTenant int }

func (k *APIKeys) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "100", "maximum number of live API keys of a tenant; beyond it POST /v1/keys is refused, 1 to 10000", &k.MaxPerTenant, 1, 10_000)
}

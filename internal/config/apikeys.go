package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// APIKeys bounds the keys that tenants make over REST. The operator's tool makes any number.
type APIKeys struct{ MaxPerTenant int }

func (k *APIKeys) settings(t *strictyaml.Table) {
	t.Int("max_per_tenant", "100", "live API keys with which a tenant cannot make another one over REST, 1 to 10000", &k.MaxPerTenant, 1, 10_000)
}

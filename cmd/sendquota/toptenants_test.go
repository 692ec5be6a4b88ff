package main

import (
	"regexp"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTopTenants_Output: a line for each tenant, the busiest first.
func TestTopTenants_Output(t *testing.T) {
	url := testenv.Postgres(t)
	t.Setenv("DATABASE_URL", url)
	testenv.Exec(t, url, `INSERT INTO tenants (id, name) SELECT gen_random_uuid(), name FROM unnest('{calm,loud,quiet}'::text[]) AS name`)
	testenv.Exec(t, url, `INSERT INTO stats (tenant_id, step, of, at, key, accepted) SELECT id, 'hour', 'total', date_trunc('hour', now(), 'UTC'), '', 7 FROM tenants WHERE name = 'loud'`)
	got := output(t, topTenants{Limit: 2}.Run)
	if !regexp.MustCompile(`^NAME +DUE +ACCEPTED +REFUSED +ENDED +CAMPAIGNS\nloud +0 +7 +0 +0 +0\ncalm +0 +0 +0 +0 +0\n$`).MatchString(got) {
		t.Errorf("printed\n%s", got)
	}
}

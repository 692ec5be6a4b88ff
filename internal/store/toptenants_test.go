package store_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTopTenants checks that the busiest tenants come first, by the pushes that are due, and that were submitted,
// refused and ended in the last two hours, and that the limit holds.
func TestTopTenants(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	flood, refused := uuid.New(), uuid.New()
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'flood'), ($2, 'refused')`, flood, refused)
	b.Exec(t, `INSERT INTO stats (tenant_id, step, of, at, key, accepted, refused, sent, failed)
		SELECT id, 'hour', 'total', date_trunc('hour', now(), 'UTC') - h * interval '1 hour', '', a, r, s, 0
		FROM (VALUES ($1::uuid, 0, 500, 0, 400), ($1, 1, 200, 10, 100), ($1, 2, 9000, 9000, 9000), ($2, 0, 1, 700, 0)) AS v (id, h, a, r, s)`, flood, refused)
	b.Exec(t, `INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, rank, phase, shard)
		SELECT gen_random_uuid(), $1, 7, 'log', s, s, s + interval '1 day', 1, 2, 2, 7
		FROM generate_series(1, 30) n, LATERAL (SELECT now() + CASE WHEN n > 20 THEN n ELSE -n END * interval '1 minute' AS s) p`, flood)
	b.Exec(t, `INSERT INTO campaigns (id, tenant_id, name, channel, message, status, started_at, audience, booked)
		VALUES (gen_random_uuid(), $1, 'one', 'log', '{}', 'running', now(), 1, 1), (gen_random_uuid(), $1, 'two', 'log', '{}', 'draft', NULL, 1, 1)`, flood)
	top, err := b.TopTenants(t.Context(), 2)
	testenv.Check(t, err)
	want := []store.TenantLoad{
		{ID: flood, Name: "flood", Due: 20, Accepted: 700, Refused: 10, Ended: 500, Campaigns: 1},
		{ID: refused, Name: "refused", Accepted: 1, Refused: 700},
	}
	if len(top) != 2 || top[0] != want[0] || top[1] != want[1] {
		t.Errorf("%+v, want %+v", top, want)
	}
}

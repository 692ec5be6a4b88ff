package campaign_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/store"
)

// recorder is a store that records the tenants of the campaigns that a worker takes.
type recorder struct {
	*store.Store
	taken []uuid.UUID
}

func (r *recorder) TakeCampaign(ctx context.Context, worker uuid.UUID, which campaigns.Condition, except []uuid.UUID) (*campaigns.Running, error) {
	c, err := r.Store.TakeCampaign(ctx, worker, which, except)
	if c != nil {
		r.taken = append(r.taken, c.Tenant)
	}
	return c, err
}

// TestRunner_EndBesideWaiting: the end of a campaign is noticed after one visit to a campaign of another tenant,
// although hundreds of those wait for their pushes and were visited longer ago.
func TestRunner_EndBesideWaiting(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	others, _, err := b.store.CreateTenant(t.Context(), "others")
	if err != nil {
		t.Fatal(err)
	}
	b.exec(`
		WITH made AS (
			INSERT INTO campaigns (id, tenant_id, name, channel, message, status, started_at, audience, booked, lease_until)
			SELECT gen_random_uuid(), $1, 'waits', 'log', '{}', 'running', now(), 1, 1, now() - interval '1 hour' FROM generate_series(1, 300) RETURNING id
		)
		INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, rank, phase, shard, campaign_id, token, started_at)
		SELECT gen_random_uuid(), $1, 7, 'log', s, s, s + interval '1 day', 1, 5, 6, 7, id, gen_random_uuid(), now()
		FROM made, LATERAL (SELECT now() + interval '20 days' AS s) p`, others)
	c := b.draft(0, campaign.Change{})
	b.exec(`UPDATE campaigns SET status = 'running', started_at = now(), lease_until = now() - interval '1 minute' WHERE id = $1`, c.ID)
	seen := &recorder{Store: b.store}
	w := campaign.NewRunner(seen, b.service(b.store), quiet, campaign.RunnerConfig{Policy: b.policy, Parse: campaign.Parse})
	for b.read(c).Status != broadcast.Finished {
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if turn := slices.Index(seen.taken, b.tenant); turn > 1 {
		t.Errorf("it was visited after %d campaigns of another tenant", turn)
	}
}

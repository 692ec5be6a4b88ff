package store

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// TenantLoad is how busy a tenant keeps the installation.
type TenantLoad struct {
	ID        uuid.UUID
	Name      string
	Due       int64 // pushes that are due and wait; at most 100,000 are counted
	Accepted  int64 // submitted in this hour of UTC and the last one
	Refused   int64 // in these hours, by limits and caps
	Ended     int64 // sent, failed or expired in these hours
	Campaigns int64 // that go on
}

// TopTenants returns the tenants with the most pushes that wait, are submitted, or end, the busiest first. It reads what workers have
// counted, and looks at each tenant once.
func (s *Store) TopTenants(ctx context.Context, limit int) ([]TenantLoad, error) {
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[TenantLoad], `
		SELECT id, name, due, accepted, refused, ended, campaigns
		FROM tenants t, LATERAL (
			SELECT count(*) AS due FROM (
				SELECT FROM live WHERE tenant_id = t.id AND (send_at AT TIME ZONE 'UTC') <= (statement_timestamp() AT TIME ZONE 'UTC')
					AND next_at <= statement_timestamp() AND token IS NULL LIMIT $2
			) l
		) d, LATERAL (
			SELECT coalesce(sum(accepted), 0)::bigint AS accepted, coalesce(sum(refused), 0)::bigint AS refused, coalesce(sum(sent + failed + expired), 0)::bigint AS ended
			FROM stats WHERE tenant_id = t.id AND step = 'hour' AND of = 'total' AND at >= date_trunc('hour', statement_timestamp(), 'UTC') - interval '1 hour'
		) n, LATERAL (
			SELECT count(*) AS campaigns FROM campaigns WHERE tenant_id = t.id AND ended_at IS NULL AND status IN `+campaigns.OpenCampaigns+`
		) c
		ORDER BY due + accepted + refused + ended DESC, name LIMIT $1`, limit, pg.MostCounted)
}

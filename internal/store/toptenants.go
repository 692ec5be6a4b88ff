package store

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// TenantLoad is the load that a tenant puts on the installation.
type TenantLoad struct {
	ID        uuid.UUID
	Name      string
	Due       int64 // waiting pushes that are due; counted up to 100,000
	Accepted  int64 // pushes submitted in the current hour of UTC and the previous one
	Refused   int64 // pushes refused by limits and caps in these hours
	Ended     int64 // pushes sent, failed or expired in these hours
	Campaigns int64 // campaigns that have started and not ended
}

// TopTenants returns up to limit tenants with the most due, accepted, refused and ended pushes, the busiest first. It
// reads the counts that workers maintain, once for each tenant.
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

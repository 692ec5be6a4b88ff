package records

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// recountTime limits the count of one tenant. It is enough for ten million pushes, with room to spare.
const recountTime = 10 * time.Minute

// Recount counts the waiting pushes of the tenant that was counted longest ago, if that is longer ago than every, and
// corrects the tenant's rows of ahead. It reports whether it has counted a tenant.
//
// The pushes in the snapshot, without the stat deltas in the snapshot, are what ahead must hold. The lock keeps
// deltas from being folded meanwhile; deltas that the snapshot does not show are folded later.
func (s *Store) Recount(ctx context.Context, every time.Duration) (counted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, recountTime)
	defer cancel()
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			var ours bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, foldLock).Scan(&ours); err != nil || !ours {
				return err
			}
			var tenant uuid.UUID
			err := tx.QueryRow(ctx, `
				SELECT t.id FROM tenants t LEFT JOIN recounts r ON r.tenant_id = t.id
				WHERE t.deleting_at IS NULL AND (r.at IS NULL OR r.at < clock_timestamp() - $1::interval) ORDER BY r.at NULLS FIRST LIMIT 1`, every).Scan(&tenant)
			if err == pgx.ErrNoRows {
				return nil
			}
			if err != nil {
				return err
			}
			counted = true
			return recount(ctx, tx, tenant)
		})
	})
	return counted && err == nil, pg.Classify(err)
}

// recount counts and corrects in one statement, and so in one snapshot. It also deletes counts of hours that have no
// waiting pushes.
func recount(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	const none = `'00000000-0000-0000-0000-000000000000'::uuid`
	_, err := tx.Exec(ctx, `
		WITH right_now AS MATERIALIZED (
			SELECT hour, channel, category, campaign_id, sum(n)::bigint AS n FROM (
				SELECT `+pg.HourOf(`send_at`)+` AS hour, channel, category, coalesce(`+pushes.CountedCampaign+`, `+none+`) AS campaign_id, count(*) AS n FROM pushes
				WHERE tenant_id = $1 AND send_at >= now() - $2::interval AND status = 'scheduled'
				GROUP BY 1, 2, 3, 4
				UNION ALL
				SELECT send_hour, channel, category, coalesce(campaign_id, `+none+`), CASE WHEN what IN ('accepted', 'moved') THEN -n ELSE n END
				FROM stat_deltas WHERE tenant_id = $1 AND send_hour IS NOT NULL
				UNION ALL
				SELECT hour, channel, category, campaign_id, 0 FROM ahead WHERE tenant_id = $1
			) all_of_it GROUP BY 1, 2, 3, 4
		), gone AS (
			DELETE FROM ahead a USING right_now r
			WHERE a.tenant_id = $1 AND a.hour = r.hour AND a.channel = r.channel AND a.category = r.category AND a.campaign_id = r.campaign_id AND r.n = 0
		), noted AS (
			INSERT INTO recounts (tenant_id, at) VALUES ($1, clock_timestamp()) ON CONFLICT (tenant_id) DO UPDATE SET at = excluded.at
		)
		INSERT INTO ahead AS a (tenant_id, hour, channel, category, campaign_id, n)
		SELECT $1, hour, channel, category, campaign_id, n FROM right_now WHERE n <> 0 ORDER BY 2, 3, 4, 5
		ON CONFLICT (tenant_id, hour, channel, category, campaign_id) DO UPDATE SET n = excluded.n WHERE a.n <> excluded.n`, tenant, pushes.MaxEventDelay)
	return err
}

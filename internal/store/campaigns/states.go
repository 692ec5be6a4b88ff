package campaigns

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// CampaignStates counts all tenants' campaigns that have started and not ended, by status. It lists 0 for a status that no
// campaign has.
func (s *Store) CampaignStates(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for _, status := range broadcast.Statuses {
		if status != broadcast.Draft && !status.Over() {
			counts[string(status)] = 0
		}
	}
	rows, _ := s.db.ReadPool.Query(ctx, `SELECT status, count(*) FROM campaigns WHERE status IN `+OpenCampaigns+` GROUP BY 1`)
	return counts, pg.Classify(pg.Fill(counts, rows))
}

// SweepCampaigns removes up to limit recipients of campaigns that ended longer ago than keep, and returns how many it
// removed; with a keep of 0, none. The campaigns stay, with their counts. The recipients of a campaign that is the pattern
// of a schedule, or that is being copied, stay, too.
func (s *Store) SweepCampaigns(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	if keep == 0 {
		return 0, nil
	}
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		for n = 0; n < limit; {
			rows, _ := c.Query(ctx, `
				SELECT audience_id FROM campaigns p
				WHERE ended_at < clock_timestamp() - $1::interval AND audience_id IS NOT NULL
					AND NOT EXISTS (SELECT FROM schedules s WHERE s.campaign_id = p.id AND s.deleted_at IS NULL)
					AND NOT EXISTS (SELECT FROM campaign_uploads u WHERE u.copy_of = p.audience_id AND NOT u.ended)
				ORDER BY ended_at LIMIT 1`, keep)
			all, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil || len(all) == 0 {
				return err
			}
			removed, err := s.removeAudience(ctx, c, all[0], limit-n)
			if err != nil {
				return err
			}
			if n += removed; removed > 0 {
				continue
			}
			tag, err := c.Exec(ctx, `UPDATE campaigns SET audience_id = NULL WHERE audience_id = $1 AND NOT EXISTS (SELECT FROM campaign_recipients WHERE audience_id = $1)`, all[0])
			if err != nil || tag.RowsAffected() == 0 { // other transactions have locked the remaining rows
				return err
			}
		}
		return nil
	})
	return n, err
}

// removeAudience removes up to limit recipients of an audience that are not locked, and returns how many it removed.
func (s *Store) removeAudience(ctx context.Context, c *pgxpool.Conn, audience uuid.UUID, limit int) (n int, err error) {
	for lanes := range s.db.InTurn(push.Lanes(s.db.Cfg.Lanes)) {
		sql := pg.InShard(`WITH old AS MATERIALIZED (
			SELECT shard, recipient_key, recipient FROM campaign_recipients WHERE {shard} audience_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED
		)
		DELETE FROM campaign_recipients r USING old
		WHERE r.audience_id = $1 AND r.shard = old.shard AND r.recipient_key = old.recipient_key AND r.recipient = old.recipient`, "$3::bigint", lanes...)
		tag, err := c.Exec(ctx, sql, append([]any{audience, limit - n}, pg.ShardArg(lanes)...)...)
		if n += int(tag.RowsAffected()); err != nil || n >= limit {
			return n, err
		}
	}
	return n, nil
}

// eraseLinesSQL removes everything from a recipient's lines except their outcomes.
const eraseLinesSQL = `
	UPDATE campaign_recipients SET recipient = '', address = '', variables = NULL, conflicts = NULL, reason = CASE WHEN outcome = 'invalid' THEN 'erased' ELSE reason END
	WHERE shard = ANY ($4::smallint[]) AND recipient_key = $1 AND tenant_id = $2 AND recipient = $3`

// EraseLines erases a recipient's lines, and returns their number. Nothing will be booked for an undecided line. It waits
// for a chunk that is deciding one of the lines; later steps of the erasure find the push that it books.
func (s *Store) EraseLines(ctx context.Context, who quota.Recipient) (rows int, err error) {
	key := push.RecipientKey(who.Tenant, who.ID)
	err = s.db.Change(ctx, who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, eraseLinesSQL, key, who.Tenant, who.ID, pg.ShardsOf(key))
		rows = int(tag.RowsAffected())
		return err
	})
	return rows, err
}

package pauses

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// dueSQL reads and locks due pushes that the pause $1 covers, up to $2 of each channel and level, unless the pause has ended. The pause
// stays locked until the commit, as in a claim. The inner query reads the index of lanes, so what is parked costs nothing.
const dueSQL = pg.ChannelsSQL + `, z AS MATERIALIZED (
		SELECT * FROM pauses WHERE id = $1 AND ended_at IS NULL AND (until > statement_timestamp()) IS NOT FALSE FOR SHARE
	)
	SELECT l.recipient_key, l.send_at, l.push_id, l.plan FROM z CROSS JOIN channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN LATERAL (
		SELECT l.* FROM live l
		WHERE {shard} channel = c.name AND phase = k.phase AND next_at <= statement_timestamp() AND expires_at > statement_timestamp()
			AND (z.tenant_id IS NULL OR l.tenant_id = z.tenant_id)
			AND CASE z.scope WHEN 'channel' THEN coalesce(l.own_channel, l.channel) = z.name WHEN 'campaign' THEN l.campaign_id::text = z.name
				WHEN 'category' THEN EXISTS (SELECT FROM {pushes} p WHERE p.id = l.push_id AND p.send_at = l.send_at AND p.shard = l.shard AND p.category = z.name)
				ELSE true END
		ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED
	) l`

const parkSQL = `
	UPDATE live l SET next_at = 'infinity', pause_id = $5 FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
	WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token IS NULL`

// longestDue is how far back the tables of pushes are searched for the category of a due push. Claims park older ones.
const longestDue = 14 * 24 * time.Hour

// ParkDue parks some due pushes that a pause covers, as claims do one by one. So what is paused does not keep the workers busy, and
// others do not wait behind it. Where each shard is a lane of its own, it searches only the shards of some recipients. more reports
// whether to call it again at once.
func (s *Store) ParkDue(ctx context.Context, id uuid.UUID, near []int64) (parked int, more bool, err error) {
	now, all := time.Now(), push.Lanes(1)
	if s.db.ByShard() {
		all = nil
		for _, shard := range pg.ShardsOf(near...) {
			all = append(all, push.Lane{First: int(shard), Last: int(shard)})
		}
	}
	sql := pg.In(dueSQL, "{pushes}", s.db.Layouts.Pushes().All(now.Add(-longestDue), now)...)
	for lanes := range s.db.InTurn(all) {
		n := 0
		err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				var rows []pushes.LiveRow
				read, _ := tx.Query(ctx, pg.InShard(sql, "$3::bigint", lanes...), append([]any{id, portion}, pg.ShardArg(lanes)...)...)
				if err := pushes.ReadLiveRows(&rows)(read); err != nil || len(rows) == 0 {
					return err
				}
				var all pushes.LiveRows
				for _, r := range rows {
					all.Add(r)
				}
				n = len(rows)
				_, err := tx.Exec(ctx, s.db.Joining(parkSQL), all.Keys, all.SendAt, all.IDs, pg.ShardsOf(all.Keys...), id)
				return err
			})
		})
		if err != nil {
			return parked, false, err
		}
		parked, more = parked+n, more || n >= portion
	}
	return parked, more, nil
}

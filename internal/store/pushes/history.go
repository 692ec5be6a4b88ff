package pushes

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// MaxEventDelay bounds how long after its send time an event of a push is still found.
const MaxEventDelay = 31 * 24 * time.Hour

// historySQL reads a recipient's pushes that existed before one time and changed, or began an attempt, since another.
const historySQL = `
	SELECT p.id, p.channel, p.category, p.status, p.requested_send_at, p.send_at, p.next_at, p.attempts, p.last_error, p.held_by, coalesce(p.held_since, ` + pg.NoTime + `) AS held_since, coalesce(p.held_until, ` + pg.NoTime + `) AS held_until, p.created_at, p.updated_at, coalesce(l.started_at, ` + pg.NoTime + `) AS started, coalesce(p.campaign_id, ` + pg.NoID + `) AS campaign
	FROM (
		SELECT * FROM {pushes} p WHERE p.shard = ANY ($7::smallint[]) AND recipient_key = $1 AND freed IN (false, true)
		OFFSET 0 -- keeps the next line from choosing another index
	) p
	LEFT JOIN live l ON l.shard = ANY ($7::smallint[]) AND l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.send_at = p.send_at AND l.push_id = p.id AND l.token IS NOT NULL
	WHERE p.tenant_id = $2 AND p.recipient = $3 AND p.created_at < $5 AND (p.updated_at >= $4 OR l.started_at >= $4)
	LIMIT $6`

// attemptsSQL reads a recipient's ended attempts that began between two times.
const attemptsSQL = `
	SELECT s.push_id AS push, s.attempt, s.channel, s.category, s.started_at, s.ended_at, s.outcome, s.error, coalesce(s.campaign_id, ` + pg.NoID + `) AS campaign FROM {sends} s
	WHERE s.shard = ANY ($7::smallint[]) AND s.recipient_key = $1 AND s.started_at >= $4 AND s.started_at < $5
		AND s.tenant_id = $2 AND s.recipient = $3 AND s.ended_at IS NOT NULL
	LIMIT $6`

// History returns a recipient's pushes and attempts with events from from until until: up to most of each. If it
// returns that many, there may be more.
func (s *Store) History(ctx context.Context, who quota.Recipient, from, until time.Time, most int) (pushes []booking.Past, attempts []booking.Attempted, err error) {
	key := push.RecipientKey(who.Tenant, who.ID)
	err = s.db.Read(ctx, who.Tenant, func(ctx context.Context, c pg.Reader) error {
		pushes, attempts = nil, nil
		if err := s.CheckTables(ctx, c, from.Add(-MaxEventDelay), booking.EndOfTime); err != nil {
			return err
		}
		args := func(left int) []any {
			return []any{key, who.Tenant, who.ID, from, until, left, pg.ShardsOf(key)}
		}
		for tables := range slices.Chunk(s.db.Layouts.Pushes().Between(from.Add(-MaxEventDelay), booking.EndOfTime), pg.TablesAtOnce) {
			rows, _ := c.Query(ctx, pg.In(historySQL, "{pushes}", tables...), args(most-len(pushes))...)
			some, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[booking.Past])
			if pushes = append(pushes, some...); err != nil || len(pushes) == most {
				return err
			}
		}
		for tables := range slices.Chunk(s.db.Layouts.Sends().Between(from, until), pg.TablesAtOnce) {
			rows, _ := c.Query(ctx, pg.In(attemptsSQL, "{sends}", tables...), args(most-len(attempts))...)
			some, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[booking.Attempted])
			if attempts = append(attempts, some...); err != nil || len(attempts) == most {
				return err
			}
		}
		return nil
	})
	return pushes, attempts, err
}

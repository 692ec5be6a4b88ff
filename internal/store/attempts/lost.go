package attempts

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// lostSQL reads the attempts with expired leases, channel by channel. While an attempt is under way, next_at is the end of its lease.
const lostSQL = pg.ChannelsSQL + `
	SELECT l.recipient_key, l.tenant_id, l.push_id, l.send_at, l.token, l.attempts, l.started_at, l.next_at, l.own_channel IS NOT NULL, true, false, false
	FROM channels c CROSS JOIN LATERAL (
		SELECT * FROM live
		WHERE {shard} channel = c.name AND phase = ` + pg.UnderWay + ` AND next_at < statement_timestamp() AND (recipient_key & 255) = ANY ($2::bigint[])
		ORDER BY next_at LIMIT $1
	) l
	LIMIT $1`

// Lost returns up to limit attempts in some lanes whose leases have expired by Postgres' clock. An attempt ends with its
// first finish, the worker's or the caller's.
func (s *Store) Lost(ctx context.Context, lanes []push.Lane, limit int) (lost []booking.Lost, err error) {
	for lanes := range s.db.InTurn(lanes) {
		found, err := s.lost(ctx, lanes, limit-len(lost))
		if lost = append(lost, found...); err != nil || len(lost) == limit {
			return lost, err
		}
	}
	return lost, nil
}

func (s *Store) lost(ctx context.Context, lanes []push.Lane, limit int) (lost []booking.Lost, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		lost = nil
		rows, _ := c.Query(ctx, pg.InShard(lostSQL, "($2::bigint[])[1]", lanes...), limit, pg.ShardsIn(lanes))
		live, err := pgx.CollectRows(rows, scanLive)
		if err != nil || len(live) == 0 {
			return err
		}
		if err := s.readBodies(ctx, c, live, &pgx.Batch{}); err != nil {
			return err
		}
		var now time.Time
		if err := c.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
			return err
		}
		for _, l := range live {
			if l.push.ID == uuid.Nil {
				continue
			}
			lost = append(lost, booking.Lost{
				Attempt: booking.Attempt{Push: l.id, RecipientKey: l.key, SendAt: l.sendAt, Token: l.token, Number: l.number, StartedAt: *l.started},
				Of:      l.push, Left: l.push.ExpiresAt.Sub(now),
			})
		}
		return nil
	})
	return lost, err
}

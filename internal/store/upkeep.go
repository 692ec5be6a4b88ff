package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// expireSQL reads all that is due in the lanes, for all channels, configured or not.
const expireSQL = channelsSQL + `, late AS MATERIALIZED (
		SELECT p.recipient_key, p.send_at, p.push_id
		FROM channels c CROSS JOIN ` + kinds + ` CROSS JOIN unnest($3::bigint[], $4::bigint[]) AS l (first, last) CROSS JOIN LATERAL (
			SELECT recipient_key, send_at, push_id FROM live
			WHERE channel = c.name AND phase = k.phase AND (recipient_key & 255) BETWEEN l.first AND l.last
				AND next_at <= statement_timestamp() AND expires_at <= statement_timestamp()
			ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED
		) p
		LIMIT $2
	), taken AS (
		DELETE FROM live l USING late
		WHERE l.recipient_key = ANY (ARRAY[late.recipient_key]) AND l.send_at = late.send_at AND l.push_id = late.push_id
		RETURNING l.push_id
	), ended AS (
		UPDATE pushes p SET status = 'expired', freed = true, plan = plan + 1, updated_at = clock_timestamp(),
			last_error = concat_ws(': ', 'it expired before it could be sent',
				CASE WHEN channel <> ALL ($1::text[]) THEN 'its channel is not configured any more' ELSE nullif(last_error, '') END)
		FROM taken WHERE p.id = taken.push_id
		RETURNING p.id, p.tenant_id, p.recipient, p.request_id, p.recipient_key
	), fewer AS (` + fewerSQL + `(SELECT recipient_key FROM ended))
	SELECT id, tenant_id, recipient, request_id FROM ended`

// Expire ends up to limit pushes for recipients of some lanes, whose expiry has passed while they waited, and returns
// them.
func (s *Store) Expire(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Ended, error) {
	firsts, lasts := rangesOf(lanes)
	if len(firsts) == 0 {
		return nil, nil
	}
	var ended []booking.Ended
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		rows, _ := c.Query(ctx, expireSQL, s.cfg.Channels, limit, firsts, lasts)
		var err error
		ended, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e booking.Ended, err error) {
			err = row.Scan((*[16]byte)(&e.ID), (*[16]byte)(&e.Tenant), &e.Recipient, &e.RequestID)
			return e, err
		})
		return err
	})
	return ended, err
}

// Backlog counts the pushes that are due and still wait, and says for how long the oldest has.
func (s *Store) Backlog(ctx context.Context) (pushes int, oldest time.Duration, err error) {
	err = s.readPool.QueryRow(ctx, channelsSQL+`
		SELECT count(*), coalesce(clock_timestamp() - min(p.next_at), '0')
		FROM channels c CROSS JOIN `+kinds+` CROSS JOIN LATERAL (
			SELECT next_at FROM live
			WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
			OFFSET 0
		) p`).Scan(&pushes, &oldest)
	return pushes, oldest, classify(err)
}

// Overdue says for how long the push that is due longest has been due, of those that can be sent; 0: none is.
func (s *Store) Overdue(ctx context.Context) (d time.Duration, err error) {
	err = s.readPool.QueryRow(ctx, channelsSQL+`
		SELECT coalesce(clock_timestamp() - min(p.next_at), '0')
		FROM channels c CROSS JOIN `+kinds+` CROSS JOIN LATERAL (
			SELECT next_at FROM live
			WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
			ORDER BY next_at LIMIT 1
		) p
		WHERE `+configured, s.cfg.Channels).Scan(&d)
	return d, classify(err)
}

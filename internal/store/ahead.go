package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// oldestSQL finds the longest due push of each channel in a lane.
const oldestSQL = channelsSQL + `
	SELECT c.name, min(p.next_at)
	FROM channels c CROSS JOIN ` + kinds + ` CROSS JOIN LATERAL (
		SELECT next_at FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
			AND (recipient_key & 255) BETWEEN $2 AND $3
		ORDER BY next_at LIMIT 1
	) p
	WHERE ` + configured + `
	GROUP BY c.name`

// momentsSQL adds as much to a time as its tenth of a second may lack, so that date_bin, which rounds down, rounds up.
const momentsSQL = channelsSQL + `
	SELECT date_bin('100 milliseconds', p.next_at + interval '99999 microseconds', timestamptz '2000-01-01 00:00:00+00') AS at, count(*)
	FROM channels c CROSS JOIN ` + kinds + ` CROSS JOIN LATERAL (
		SELECT next_at FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND next_at >= $4 AND next_at < $5
			AND (recipient_key & 255) BETWEEN $2 AND $3
		OFFSET 0
	) p
	WHERE ` + configured + `
	GROUP BY 1 ORDER BY 1`

// Ahead counts the pushes for configured channels that will be due in a lane within the horizon, and not before from,
// by the tenth of a second in which they become due. Those that are due already are not counted, but the oldest of each
// channel is told. The tenth of a second in which Until lies is cut in two: a call with from at Until has the rest of it.
func (s *Store) Ahead(ctx context.Context, lane push.Lane, from time.Time, horizon time.Duration) (push.Ahead, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var a push.Ahead
	err := onConn(ctx, s.pool, func(c *pgxpool.Conn) error {
		if err := c.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&a.Now); err != nil {
			return err
		}
		a.Until, a.Oldest = a.Now.Add(horizon), map[string]time.Time{}
		if from.Before(a.Now) {
			from = a.Now
		}
		b := &pgx.Batch{}
		b.Queue(inShard(oldestSQL, "$2::bigint", lane), s.cfg.Channels, lane.First, lane.Last).
			Query(func(rows pgx.Rows) error { return fill(a.Oldest, rows) })
		b.Queue(inShard(momentsSQL, "$2::bigint", lane), s.cfg.Channels, lane.First, lane.Last, from, a.Until).Query(func(rows pgx.Rows) (err error) {
			a.Moments, err = pgx.AppendRows(a.Moments, rows, pgx.RowToStructByPos[push.Moment])
			return err
		})
		return c.SendBatch(ctx, b).Close()
	})
	return a, classify(err)
}

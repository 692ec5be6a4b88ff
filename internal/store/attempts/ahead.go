package attempts

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// nowSQL is the present for [Store.Ahead]: the same in all statements of its transaction.
const nowSQL = `transaction_timestamp()`

// oldestSQL finds the push of each channel in each lane that has been due longest.
const oldestSQL = pg.ChannelsSQL + `
	SELECT l.n::int, c.name, min(p.next_at)
	FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS l (first, last, n) CROSS JOIN LATERAL (
		SELECT next_at FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND next_at <= ` + nowSQL + `
			AND (recipient_key & 255) BETWEEN l.first AND l.last
		ORDER BY next_at LIMIT 1
	) p
	WHERE ` + pg.Configured + `
	GROUP BY l.n, c.name`

// momentsSQL counts the pushes that become due, for all lanes in one scan. It adds just under a tenth of a second to each
// time, so that date_bin, which rounds down, rounds up.
const momentsSQL = pg.ChannelsSQL + `, lanes AS MATERIALIZED (
		SELECT first, last, greatest(since, ` + nowSQL + `) AS since, n
		FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[]) WITH ORDINALITY AS l (first, last, since, n)
	)
	SELECT l.n::int, date_bin('100 milliseconds', p.next_at + interval '99999 microseconds', timestamptz '2000-01-01 00:00:00+00') AS at, count(*)
	FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN LATERAL (
		SELECT next_at, recipient_key & 255 AS shard FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND next_at >= (SELECT min(since) FROM lanes) AND next_at < ` + nowSQL + ` + $5::interval
			AND (recipient_key & 255) BETWEEN (SELECT min(first) FROM lanes) AND (SELECT max(last) FROM lanes)
		OFFSET 0
	) p JOIN lanes l ON p.shard BETWEEN l.first AND l.last AND p.next_at >= l.since
	WHERE ` + pg.Configured + `
	GROUP BY 1, 2 ORDER BY 1, 2`

// Ahead counts the pushes for configured channels that become due in some lanes within the horizon, by tenths of a second.
// In each lane it begins where the last count ended. It does not count pushes that are already due, but returns when the
// oldest push of each channel became due. Until may lie within a tenth of a second: the next call counts the rest of it.
// The answers are in the order of lanes; with an error there may be fewer.
func (s *Store) Ahead(ctx context.Context, lanes []push.CountedLane, horizon time.Duration) (ahead []push.Ahead, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	if !s.db.ByShard() {
		return s.aheadOf(ctx, lanes, horizon)
	}
	for _, l := range lanes {
		one, err := s.aheadOf(ctx, []push.CountedLane{l}, horizon)
		if err != nil {
			return ahead, err
		}
		ahead = append(ahead, one...)
	}
	return ahead, nil
}

// aheadOf counts for lanes that one transaction may touch. With an error, Oldest may be filled although Moments is not.
func (s *Store) aheadOf(ctx context.Context, lanes []push.CountedLane, horizon time.Duration) ([]push.Ahead, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	var (
		all           = make([]push.Lane, len(lanes))
		firsts, lasts = make([]int64, len(lanes)), make([]int64, len(lanes))
		since         = make([]time.Time, len(lanes))
		ahead         = make([]push.Ahead, len(lanes))
		now           time.Time
	)
	for i, l := range lanes {
		all[i], firsts[i], lasts[i], since[i] = l.Lane, int64(l.First), int64(l.Last), l.Until
		ahead[i].Oldest = map[string]time.Time{}
	}
	b := &pgx.Batch{}
	b.Queue(`SELECT ` + nowSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	b.Queue(pg.InShard(oldestSQL, "($2::bigint[])[1]", all...), s.db.Cfg.Channels, firsts, lasts).Query(func(rows pgx.Rows) error {
		var (
			n       int
			channel string
			at      time.Time
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &channel, &at}, func() error {
			ahead[n-1].Oldest[channel] = at
			return nil
		})
		return err
	})
	b.Queue(pg.InShard(momentsSQL, "($2::bigint[])[1]", all...), s.db.Cfg.Channels, firsts, lasts, since, horizon).Query(func(rows pgx.Rows) error {
		var (
			n int
			m push.Moment
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &m.At, &m.Pushes}, func() error {
			ahead[n-1].Moments = append(ahead[n-1].Moments, m)
			return nil
		})
		return err
	})
	err := pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error { return c.SendBatch(ctx, b).Close() })
	for i := range ahead {
		ahead[i].Now, ahead[i].Until = now, now.Add(horizon)
	}
	return ahead, pg.Classify(err)
}

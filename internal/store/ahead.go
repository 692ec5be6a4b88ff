package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
)

// aheadSQL adds as much to a time as its tenth of a second may lack, so that date_bin, which rounds down, rounds up.
const aheadSQL = channelsSQL + `, oldest AS (
		SELECT min(p.next_at) AS at
		FROM channels c CROSS JOIN ` + kinds + ` CROSS JOIN LATERAL (
			SELECT next_at FROM pushes
			WHERE ` + isScheduled + ` AND channel = c.name AND bulk = k.bulk AND next_at <= statement_timestamp()
				AND (recipient_key & 255) BETWEEN $2 AND $3
			ORDER BY next_at LIMIT 1
		) p
		WHERE ` + configured + `
	), moments AS (
		SELECT date_bin('100 milliseconds', p.next_at + interval '99999 microseconds', timestamptz '2000-01-01 00:00:00+00') AS at, count(*) AS pushes
		FROM channels c CROSS JOIN ` + kinds + ` CROSS JOIN LATERAL (
			SELECT next_at FROM pushes
			WHERE ` + isScheduled + ` AND channel = c.name AND bulk = k.bulk
				AND next_at > statement_timestamp() AND next_at >= $4 AND next_at < statement_timestamp() + $5::interval
				AND (recipient_key & 255) BETWEEN $2 AND $3
			OFFSET 0
		) p
		WHERE ` + configured + `
		GROUP BY 1
	)
	SELECT statement_timestamp(), statement_timestamp() + $5::interval, oldest.at, m.at, coalesce(m.pushes, 0)
	FROM oldest LEFT JOIN moments m ON true ORDER BY m.at`

// Ahead counts the pushes for configured channels that will be due in a lane within the horizon, and not before from,
// by the tenth of a second in which they become due. Those that are due already are not counted, but their oldest is
// told. The tenth of a second in which Until lies is cut in two: a call with from at Until has the rest of it.
func (s *Store) Ahead(ctx context.Context, lane push.Lane, from time.Time, horizon time.Duration) (push.Ahead, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var (
		a push.Ahead
		m push.Moment
	)
	rows, _ := s.pool.Query(ctx, aheadSQL, s.cfg.Channels, lane.First, lane.Last, from, horizon)
	columns := []any{&a.Now, &a.Until, (*zeronull.Timestamptz)(&a.Oldest), (*zeronull.Timestamptz)(&m.At), &m.Pushes}
	_, err := pgx.ForEachRow(rows, columns, func() error {
		if m.Pushes > 0 {
			a.Moments = append(a.Moments, m)
		}
		return nil
	})
	return a, classify(err)
}

package records

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
)

const (
	flowSpan     = time.Hour
	flowAttempts = 50_000 // the maximum number of attempts that are counted
)

// flowSQL counts a tenant's latest attempts by minute. One more row, without a minute, counts all of them.
const flowSQL = `
	SELECT minute, count(*), count(*) FILTER (WHERE outcome = 'delivered'), count(*) FILTER (WHERE outcome = 'refused'), count(*) FILTER (WHERE outcome = 'unknown'),
		coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY late), '0'), coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY late), '0'), min(started_at)
	FROM (
		SELECT started_at, date_bin('1 minute', started_at, '2000-01-01Z') AS minute, outcome,
			CASE WHEN outcome = 'delivered' AND send_at IS NOT NULL THEN greatest(ended_at - send_at, '0') END AS late
		FROM {sends} s
		WHERE tenant_id = $1 AND outcome || '' <> '' AND started_at > statement_timestamp() - $2::interval
		ORDER BY started_at DESC LIMIT $3
	) latest GROUP BY GROUPING SETS ((minute), ()) ORDER BY minute NULLS LAST`

// Flow returns the backlog of a tenant and its attempts of the last hour. It counts up to 100,000 live pushes and the
// latest 50,000 attempts.
func (s *Store) Flow(ctx context.Context, tenant uuid.UUID) (f stats.Flow, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var scanned, attempts int
		f = stats.Flow{All: stats.FlowMinute{Attempts: map[push.Outcome]int{}}}
		now, b := time.Now(), &pgx.Batch{}
		b.Queue(`
			SELECT statement_timestamp(), (SELECT count(DISTINCT worker) FROM channel_views WHERE seen_at > statement_timestamp() - $3::interval),
				count(*), count(*) FILTER (WHERE waits), min(send_at) FILTER (WHERE waits), count(*) FILTER (WHERE NOT waits AND NOT stopped AND put_off), count(*) FILTER (WHERE stopped)
			FROM (
				SELECT send_at, next_at <= statement_timestamp() AND token IS NULL AS waits, put_off_at IS NOT NULL AND token IS NULL AS put_off, `+stopped+` FROM live
				WHERE tenant_id = $1 AND (send_at AT TIME ZONE 'UTC') <= (statement_timestamp() AT TIME ZONE 'UTC')
				ORDER BY (send_at AT TIME ZONE 'UTC') LIMIT $2
			) p`, tenant, pg.MostCounted, viewsFresh).QueryRow(func(row pgx.Row) error {
			return row.Scan(&f.AsOf, &f.Workers, &scanned, &f.Waiting, (*zeronull.Timestamptz)(&f.Oldest), &f.PutOff, &f.Stopped)
		})
		b.Queue(pg.In(flowSQL, "{sends}", s.db.Layouts.Sends().All(now.Add(-flowSpan-attemptsSpan), now.Add(attemptsSpan))...), tenant, flowSpan, flowAttempts).
			Query(func(rows pgx.Rows) error { return readFlow(rows, &f, &attempts) })
		err := c.SendBatch(ctx, b).Close()
		if cut := attempts == flowAttempts; !cut {
			f.Since = f.AsOf.Add(-flowSpan)
		}
		f.Complete = scanned < pg.MostCounted && attempts < flowAttempts
		return err
	})
	return f, err
}

// readFlow reads the minutes and their total. attempts receives the number of attempts in the total.
func readFlow(rows pgx.Rows, f *stats.Flow, attempts *int) error {
	var (
		minute, first               time.Time
		n                           int
		delivered, refused, unknown int
		p50, p99                    time.Duration
	)
	_, err := pgx.ForEachRow(rows, []any{(*zeronull.Timestamptz)(&minute), &n, &delivered, &refused, &unknown, &p50, &p99, (*zeronull.Timestamptz)(&first)}, func() error {
		m := stats.FlowMinute{
			At: minute, Attempts: map[push.Outcome]int{push.Delivered: delivered, push.Refused: refused, push.Unknown: unknown}, LateP50: p50, LateP99: p99,
		}
		if minute.IsZero() {
			f.All, f.Since, *attempts = m, first, n
			return nil
		}
		f.Minutes = append(f.Minutes, m)
		return nil
	})
	return err
}

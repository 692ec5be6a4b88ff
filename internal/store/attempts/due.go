package attempts

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
)

// oldestFirstSQL and newestFirstSQL read due pushes in both directions.
var oldestFirstSQL, newestFirstSQL = dueSQL(""), dueSQL(" DESC")

// dueSQL returns the query for due pushes. The query scans little more of the index than it returns: only pushes of other
// lanes and of excluded recipients. Its lower bounds are one comparison of rows: with two comparisons, Postgres would begin
// at one bound and test each row for the other. Shard -1 sorts before all others.
func dueSQL(direction string) string {
	return `
	SELECT p.recipient_key, p.tenant_id, c.name, p.next_at, k.phase = 1
	FROM unnest($1::text[], $2::int[], $3::timestamptz[], $4::bigint[], $10::bool[]) AS c (name, most, behind_at, behind_key, behind_bulk)
	CROSS JOIN ` + pg.Kinds + `
	CROSS JOIN LATERAL (
		SELECT recipient_key, tenant_id, next_at FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
			AND (next_at, recipient_key & 255, recipient_key >> 8) > (
				CASE WHEN k.phase = c.behind_bulk::int THEN greatest(c.behind_at, $9) WHEN k.phase = 1 THEN $9 ELSE 'infinity' END,
				CASE WHEN k.phase = c.behind_bulk::int AND c.behind_at >= $9 THEN c.behind_key & 255 ELSE -1 END, c.behind_key >> 8)
			AND (recipient_key & 255) BETWEEN $5 AND $6
			AND recipient_key NOT IN (SELECT unnest($7::bigint[]))
		ORDER BY next_at` + direction + `, recipient_key & 255` + direction + `, recipient_key >> 8` + direction + ` LIMIT least(c.most, $8::int)
	) p
	ORDER BY k.phase, p.next_at` + direction + `, p.recipient_key & 255, p.recipient_key LIMIT $8::int`
}

// Due returns pushes that are due in a lane: first pushes that are not bulk, then bulk ones, each oldest first, or with
// Newest, newest first. A recipient is listed once for each due push. now is the time of Postgres' clock, also if nothing
// is due. It takes no locks.
func (s *Store) Due(ctx context.Context, o booking.DueOrder) (due []booking.Due, now time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	b := &pgx.Batch{}
	sql := oldestFirstSQL
	if o.Newest {
		sql = newestFirstSQL
	}
	b.Queue(pg.InShard(sql, "$5::bigint", o.Lane), dueArgs(o)...)
	b.Queue(`SELECT clock_timestamp()`)
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		res := c.SendBatch(ctx, b)
		defer res.Close()
		rows, _ := res.Query()
		var err error
		if due, err = pgx.CollectRows(rows, scanDue); err != nil {
			return err
		}
		return res.QueryRow().Scan(&now)
	})
	return due, now, pg.Classify(err)
}

func dueArgs(o booking.DueOrder) []any {
	n := len(o.Channels)
	names, most, at, keys, bulk := make([]string, n), make([]int32, n), make([]time.Time, n), make([]int64, n), make([]bool, n)
	for i, c := range o.Channels {
		names[i], most[i], at[i], keys[i], bulk[i] = c.Name, int32(c.Most), c.Behind.At, c.Behind.RecipientKey, c.Behind.Bulk
	}
	return []any{names, most, at, keys, o.Lane.First, o.Lane.Last, o.Without, o.Most, o.From, bulk}
}

func scanDue(row pgx.CollectableRow) (d booking.Due, err error) {
	err = row.Scan(&d.RecipientKey, &d.Tenant, &d.Channel, &d.At, &d.Bulk)
	return d, err
}

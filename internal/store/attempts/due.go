package attempts

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// oldestFirstSQL and newestFirstSQL read due pushes in both directions.
var oldestFirstSQL, newestFirstSQL = dueSQL(""), dueSQL(" DESC")

// dueSQL returns the query for due pushes. The query scans little more of the index than it returns: only pushes of other
// lanes and of excluded recipients. Its lower bounds are one comparison of rows: with two comparisons, Postgres would begin
// at one bound and test each row for the other. Shard -1 sorts before all others.
//
// The outer order gives each level its share: the n-th push of a level comes at n divided by the share.
func dueSQL(direction string) string {
	order := `next_at` + direction + `, recipient_key & 255` + direction + `, recipient_key >> 8` + direction
	return `
	SELECT recipient_key, tenant_id, name, next_at, phase, own_channel FROM (
		SELECT p.*, c.name, k.phase, row_number() OVER (PARTITION BY k.phase / 2 ORDER BY k.phase, ` + order + `) AS n
		FROM unnest($1::text[], $2::int[], $3::timestamptz[], $4::bigint[], $10::smallint[], $11::int[]) AS c (name, most, behind_at, behind_key, behind_rank, levels)
		CROSS JOIN ` + pg.Ranks + `
		CROSS JOIN LATERAL (
			SELECT recipient_key, tenant_id, next_at, own_channel FROM live
			WHERE {shard} channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
				AND (next_at, recipient_key & 255, recipient_key >> 8) > (
					CASE WHEN k.phase = c.behind_rank THEN greatest(c.behind_at, $9) WHEN k.phase > c.behind_rank THEN $9 ELSE 'infinity' END,
					CASE WHEN k.phase = c.behind_rank AND c.behind_at >= $9 THEN c.behind_key & 255 ELSE -1 END, c.behind_key >> 8)
				AND (recipient_key & 255) BETWEEN $5 AND $6
				AND recipient_key NOT IN (SELECT unnest($7::bigint[]))
			ORDER BY ` + order + ` LIMIT least(c.most, $8::int)
		) p
		WHERE c.levels >> (k.phase / 2) & 1 = 1
	) due
	ORDER BY n::float8 / ($12::int[])[phase / 2 + 1], phase LIMIT $8::int`
}

// Due returns pushes that are due in a lane, in the order that o describes. A recipient is listed once for each due push.
// now is the time of Postgres' clock, also if nothing is due. It takes no locks.
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
	names, most, at, keys := make([]string, n), make([]int32, n), make([]time.Time, n), make([]int64, n)
	ranks, levels := make([]int16, n), make([]int32, n)
	for i, c := range o.Channels {
		names[i], most[i], at[i], keys[i], ranks[i] = c.Name, int32(c.Most), c.Behind.At, c.Behind.RecipientKey, int16(c.Behind.Rank)
		for _, l := range c.Levels {
			levels[i] |= 1 << l.Index()
		}
		if c.Levels == nil {
			levels[i] = 1<<len(push.Levels) - 1
		}
	}
	return []any{names, most, at, keys, o.Lane.First, o.Lane.Last, o.Without, o.Most, o.From, ranks, levels, push.DefaultShares[:]}
}

func scanDue(row pgx.CollectableRow) (d booking.Due, err error) {
	var own *string
	if err = row.Scan(&d.RecipientKey, &d.Tenant, &d.Channel, &d.At, (*int16)(&d.Rank), &own); own != nil {
		d.Channel = booking.RouteTo(d.Tenant, *own)
	}
	return d, err
}

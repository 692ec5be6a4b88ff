package records

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
)

// failuresScanned limits the freed pushes that are read, the latest first. Canceled pushes are among them.
const failuresScanned = 100_000

// failuresSQL groups the failed and expired pushes among the latest freed pushes (see [pushes.FreedSQL]). One more row,
// without a status, holds the number of pushes that were read and their earliest send time.
const failuresSQL = `
	WITH scanned AS MATERIALIZED (
		SELECT p.send_at, p.status, p.channel, p.last_error, p.possibly_delivered, p.retry_latest, p.retry_of, p.recipient <> '' AND ($4 = '' OR p.channel = $4) AND ($5::uuid IS NULL OR p.campaign_id = $5) AS fits
		FROM {pushes} p WHERE p.tenant_id = $1 AND p.send_at >= $2 AND p.send_at < $3 AND ` + pushes.FreedSQL + ` ORDER BY p.send_at DESC, p.id DESC LIMIT $6
	)
	SELECT '', '', '', count(*), min(send_at), NULL, 0, 0, 0 FROM scanned
	UNION ALL
	SELECT status, channel, last_error, count(*), min(send_at), max(send_at), count(*) FILTER (WHERE possibly_delivered), count(retry_latest), count(retry_of)
	FROM scanned WHERE fits AND status IN ('failed', 'expired') GROUP BY status, channel, last_error`

// Failures groups a tenant's failed and expired pushes. It reads at most the latest 100,000 freed pushes of the
// period (see [pushes.FreedSQL]).
func (s *Store) Failures(ctx context.Context, tenant uuid.UUID, q stats.FailureQuery) (f stats.Failures, err error) {
	type key struct {
		status          push.Status
		channel, reason string
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		if err := s.pushes.CheckTables(ctx, c, q.From, q.Until); err != nil {
			return err
		}
		f = stats.Failures{Since: q.From}
		groups, left := map[key]*stats.FailureGroup{}, failuresScanned
		tables := s.db.Layouts.Pushes().Between(q.From, q.Until)
		slices.Reverse(tables)
		for tables := range slices.Chunk(tables, pg.TablesAtOnce) {
			rows, _ := c.Query(ctx, pg.In(failuresSQL, "{pushes}", tables...), tenant, q.From, q.Until, q.Channel, zeronull.UUID(q.Campaign), left)
			var (
				g     stats.FailureGroup
				since time.Time
			)
			_, err := pgx.ForEachRow(rows, []any{(*string)(&g.Status), &g.Channel, &g.Reason, &g.Pushes, (*zeronull.Timestamptz)(&g.First), (*zeronull.Timestamptz)(&g.Last), &g.PossiblyDelivered, &g.Retried, &g.Retries}, func() error {
				if g.Status == "" {
					left, since = left-g.Pushes, g.First
					return nil
				}
				k := key{g.Status, g.Channel, g.Reason}
				if groups[k] == nil {
					groups[k] = new(g)
					return nil
				}
				groups[k].Add(g)
				return nil
			})
			if err != nil {
				return err
			}
			if left <= 0 {
				f.Since = since
				break
			}
		}
		for _, g := range groups {
			f.Groups = append(f.Groups, *g)
		}
		slices.SortFunc(f.Groups, func(a, b stats.FailureGroup) int {
			return cmp.Or(b.Pushes-a.Pushes, cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Status, b.Status))
		})
		return nil
	})
	return f, err
}

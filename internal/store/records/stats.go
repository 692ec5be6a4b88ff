// Package records counts and lists what has happened: statistics, sends, refusals, failures, channels.
package records

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// Store reads and writes these records.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store {
	return &Store{db: db, pushes: pushes}
}

// maxStatRows limits the rows that one answer is made from.
const maxStatRows = 100_000

// statsSQL reads statistics of some steps and times, the stat deltas that are not folded yet, and the time, in one
// snapshot.
const statsSQL = `
	(SELECT '' AS what, s.at, s.key, s.accepted, s.deferred, s.refused, s.sent, s.failed, s.expired, s.canceled, s.segments, s.late, NULL::smallint[] AS buckets
	FROM unnest($3::text[], $4::timestamptz[], $5::timestamptz[]) AS r (step, since, until)
	JOIN stats s ON s.tenant_id = $1 AND s.step = r.step AND s.of = $2 AND s.at >= r.since AND s.at < r.until
	LIMIT $8)
	UNION ALL
	(SELECT what, hour, {key}, n, deferred, 0, 0, 0, 0, 0, segments, NULL, late FROM stat_deltas
	WHERE tenant_id = $1 AND hour >= $6 AND hour < $7 AND what <> 'moved' AND (what = 'rule') = ($2 = 'rule')
	LIMIT $8)
	UNION ALL
	SELECT 'now', statement_timestamp(), '', 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL`

// deltaKeys maps a group of statistics to its key in stat_deltas.
var deltaKeys = map[string]string{
	ofTotal: `''`, string(stats.ByChannel): `channel`, string(stats.ByCategory): `category`, string(stats.ByLevel): `(ARRAY['urgent', 'normal', 'bulk'])[level + 1]`, string(stats.ByCampaign): `coalesce(campaign_id::text, '')`, string(stats.ByRule): `rule`,
}

// Stats returns a tenant's statistics as of report.AsOf. They are exact, except that they may lack the refusals of the
// last seconds.
func (s *Store) Stats(ctx context.Context, tenant uuid.UUID, q stats.Query) (report stats.Report, err error) {
	of := string(q.By)
	if q.By == stats.ByHour || q.By == stats.ByDay {
		of = ofTotal
	}
	steps, since, until := stepsOf(q)
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		report = stats.Report{}
		groups := map[statKey]*stats.Group{}
		rows, _ := c.Query(ctx, strings.Replace(statsSQL, "{key}", deltaKeys[of], 1), tenant, of, steps, since, until, q.From, q.Until, maxStatRows)
		var (
			what, key string
			at        time.Time
			of        stats.Group
			late      []byte
			buckets   []int16
			n         int
		)
		_, err := pgx.ForEachRow(rows, []any{&what, &at, &key, &of.Accepted, &of.Deferred, &of.Refused, &of.Sent, &of.Failed, &of.Expired, &of.Canceled, &of.Segments, &late, &buckets}, func() error {
			if what == "now" {
				report.AsOf = at.UTC()
				return nil
			}
			n++
			k := statKey{key: key}
			switch q.By {
			case stats.ByHour:
				k.at = at.Unix()
			case stats.ByDay:
				k.at = at.Truncate(24 * time.Hour).Unix()
			}
			g := groups[k]
			if g == nil {
				g = &stats.Group{At: time.Unix(k.at, 0).UTC(), Key: key, Late: stats.Lateness{}}
				groups[k] = g
			}
			if what != "" {
				(&deltaRow{what: what, n: of.Accepted, deferred: of.Deferred, segments: of.Segments, late: buckets}).addTo(g)
				return nil
			}
			addStat(g, &of)
			g.Late.AddBytes(late)
			return nil
		})
		report.Cut = n >= maxStatRows
		report.Groups = inOrder(groups)
		return err
	})
	return report, err
}

// addStat adds the counts of s to to, without the lateness.
func addStat(to, s *stats.Group) {
	to.Accepted += s.Accepted
	to.Deferred += s.Deferred
	to.Refused += s.Refused
	to.Sent += s.Sent
	to.Segments += s.Segments
	to.Failed += s.Failed
	to.Expired += s.Expired
	to.Canceled += s.Canceled
}

// inOrder returns the groups ordered by time and key.
func inOrder(groups map[statKey]*stats.Group) []stats.Group {
	keys := make([]statKey, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, statKey.compare)
	all := make([]stats.Group, len(keys))
	for i, k := range keys {
		all[i] = *groups[k]
	}
	return all
}

// stepsOf divides the period of a query into whole days and the hours around them. A query by hour gets hours only.
func stepsOf(q stats.Query) (steps []string, since, until []time.Time) {
	add := func(step string, from, to time.Time) {
		if from.Before(to) {
			steps, since, until = append(steps, step), append(since, from), append(until, to)
		}
	}
	const day = 24 * time.Hour
	first, last := q.From.Add(day-1).Truncate(day), q.Until.Truncate(day)
	if q.By == stats.ByHour || !first.Before(last) {
		add(stepHour, q.From, q.Until)
		return steps, since, until
	}
	add(stepHour, q.From, first)
	add(stepDay, first, last)
	add(stepHour, last, q.Until)
	return steps, since, until
}

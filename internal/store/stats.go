package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
)

// statRows bounds how many rows of numbers one answer is made from.
const statRows = 100_000

// statsSQL reads numbers of some steps and times, those that are not added yet, and the time, all at one moment.
const statsSQL = `
	(SELECT '' AS what, s.at, s.key, s.accepted, s.deferred, s.refused, s.sent, s.failed, s.expired, s.canceled, s.late, NULL::smallint[] AS buckets
	FROM unnest($3::text[], $4::timestamptz[], $5::timestamptz[]) AS r (step, since, until)
	JOIN stats s ON s.tenant_id = $1 AND s.step = r.step AND s.of = $2 AND s.at >= r.since AND s.at < r.until
	LIMIT $8)
	UNION ALL
	(SELECT what, hour, {key}, n, deferred, 0, 0, 0, 0, 0, NULL, late FROM tallies
	WHERE tenant_id = $1 AND hour >= $6 AND hour < $7 AND what <> 'moved' AND (what = 'rule') = ($2 = 'rule')
	LIMIT $8)
	UNION ALL
	SELECT 'now', statement_timestamp(), '', 0, 0, 0, 0, 0, 0, 0, NULL, NULL`

// talliedKeys is the key of a tally, by what numbers are of.
var talliedKeys = map[string]string{
	ofTotal: `''`, string(push.ByChannel): `channel`, string(push.ByCategory): `category`, string(push.ByCampaign): `coalesce(campaign_id::text, '')`, string(push.ByRule): `rule`,
}

// Stats returns a tenant's numbers, which are exact at the moment that it says, but for what processes have refused in the last
// seconds.
func (s *Store) Stats(ctx context.Context, tenant uuid.UUID, q push.StatsQuery) (stats push.Stats, err error) {
	of := string(q.By)
	if q.By == push.ByHour || q.By == push.ByDay {
		of = ofTotal
	}
	steps, since, until := stepsOf(q)
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		stats = push.Stats{}
		groups := map[statKey]*push.Stat{}
		rows, _ := c.Query(ctx, strings.Replace(statsSQL, "{key}", talliedKeys[of], 1), [16]byte(tenant), of, steps, since, until, q.From, q.Until, statRows)
		var (
			what, key string
			at        time.Time
			of        push.Stat
			late      []byte
			buckets   []int16
			n         int
		)
		_, err := pgx.ForEachRow(rows, []any{&what, &at, &key, &of.Accepted, &of.Deferred, &of.Refused, &of.Sent, &of.Failed, &of.Expired, &of.Canceled, &late, &buckets}, func() error {
			if what == "now" {
				stats.AsOf = at.UTC()
				return nil
			}
			n++
			k := statKey{key: key}
			switch q.By {
			case push.ByHour:
				k.at = at.Unix()
			case push.ByDay:
				k.at = at.Truncate(24 * time.Hour).Unix()
			}
			g := groups[k]
			if g == nil {
				g = &push.Stat{At: time.Unix(k.at, 0).UTC(), Key: key, Late: push.Lateness{}}
				groups[k] = g
			}
			if what != "" {
				(&tallyRow{what: what, n: of.Accepted, deferred: of.Deferred, late: buckets}).addTo(g)
				return nil
			}
			addStat(g, &of)
			g.Late.AddBytes(late)
			return nil
		})
		stats.Cut = n >= statRows
		stats.Groups = inOrder(groups)
		return err
	})
	return stats, err
}

// addStat adds numbers, but for how late they were.
func addStat(to, s *push.Stat) {
	to.Accepted += s.Accepted
	to.Deferred += s.Deferred
	to.Refused += s.Refused
	to.Sent += s.Sent
	to.Failed += s.Failed
	to.Expired += s.Expired
	to.Canceled += s.Canceled
}

func inOrder(groups map[statKey]*push.Stat) []push.Stat {
	keys := make([]statKey, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, statKey.compare)
	all := make([]push.Stat, len(keys))
	for i, k := range keys {
		all[i] = *groups[k]
	}
	return all
}

// stepsOf divides the time of a question into whole days and the hours around them, and leaves it in hours if that is asked for.
func stepsOf(q push.StatsQuery) (steps []string, since, until []time.Time) {
	add := func(step string, from, to time.Time) {
		if from.Before(to) {
			steps, since, until = append(steps, step), append(since, from), append(until, to)
		}
	}
	const day = 24 * time.Hour
	first, last := q.From.Add(day-1).Truncate(day), q.Until.Truncate(day)
	if q.By == push.ByHour || !first.Before(last) {
		add(stepHour, q.From, q.Until)
		return steps, since, until
	}
	add(stepHour, q.From, first)
	add(stepDay, first, last)
	add(stepHour, last, q.Until)
	return steps, since, until
}

// campaignTallies returns the numbers of a campaign of all time, at the moment of the statement: how many of its pushes were sent, have
// failed, have expired and were canceled.
func campaignTallies(ctx context.Context, c batcher, tenant, campaign uuid.UUID) (s push.Stat, err error) {
	b := &pgx.Batch{}
	b.Queue(`
		SELECT sum(accepted)::bigint, sum(deferred)::bigint, sum(refused)::bigint, sum(sent)::bigint, sum(failed)::bigint, sum(expired)::bigint, sum(canceled)::bigint FROM (
			SELECT accepted, deferred, refused, sent, failed, expired, canceled FROM stats
			WHERE tenant_id = $1 AND step = '`+stepEver+`' AND of = '`+string(push.ByCampaign)+`' AND at = 'epoch' AND key = $2::uuid::text
			UNION ALL
			SELECT sum(n) FILTER (WHERE what = 'accepted'), sum(deferred), sum(n) FILTER (WHERE what = 'refused'), sum(n) FILTER (WHERE what = 'sent'),
				sum(n) FILTER (WHERE what = 'failed'), sum(n) FILTER (WHERE what = 'expired'), sum(n) FILTER (WHERE what = 'canceled')
			FROM tallies WHERE tenant_id = $1 AND campaign_id = $2
		) all_time`, [16]byte(tenant), [16]byte(campaign)).QueryRow(func(row pgx.Row) error {
		return row.Scan((*zeronull.Int8)(&s.Accepted), (*zeronull.Int8)(&s.Deferred), (*zeronull.Int8)(&s.Refused), (*zeronull.Int8)(&s.Sent),
			(*zeronull.Int8)(&s.Failed), (*zeronull.Int8)(&s.Expired), (*zeronull.Int8)(&s.Canceled))
	})
	return s, c.SendBatch(ctx, b).Close()
}

// CampaignTallies is what a tenant's campaign has come to: of its pushes that were accepted, how many have ended, and how.
func (s *Store) CampaignTallies(ctx context.Context, tenant, campaign uuid.UUID) (n push.Stat, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		n, err = campaignTallies(ctx, c, tenant, campaign)
		return err
	})
	return n, err
}

// AheadCounts returns how many of a tenant's pushes wait for a send time in each hour, or each day, in which there are some.
func (s *Store) AheadCounts(ctx context.Context, tenant uuid.UUID, q push.AheadQuery) (counts []push.AheadCount, err error) {
	width := time.Hour
	if q.By == push.ByDay {
		width = 24 * time.Hour
	}
	args := []any{[16]byte(tenant), q.From, q.Until, width}
	conditions := []string{`tenant_id = $1`, `hour >= $2`, `hour < $3`}
	fit := func(column string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(`%s = $%d`, column, len(args)))
	}
	if q.Channel != "" {
		fit("channel", q.Channel)
	}
	if q.Category != "" {
		fit("category", q.Category)
	}
	if q.Campaign != uuid.Nil {
		fit("campaign_id", [16]byte(q.Campaign))
	}
	where := strings.Join(conditions, ` AND `)
	tallied := strings.NewReplacer(`hour >=`, `send_hour >=`, `hour <`, `send_hour <`).Replace(where)
	sql := `
		SELECT date_bin($4::interval, hour, '2000-01-01Z') AS at, sum(n)::bigint FROM (
			SELECT hour, n FROM ahead WHERE ` + where + `
			UNION ALL
			SELECT send_hour, CASE WHEN what IN ('accepted', 'moved') THEN n ELSE -n END FROM tallies WHERE ` + tallied + `
		) a GROUP BY 1 HAVING sum(n) > 0 ORDER BY 1`
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		rows, _ := c.Query(ctx, sql, args...)
		counts, err = pgx.CollectRows(rows, pgx.RowToStructByPos[push.AheadCount])
		return err
	})
	return counts, err
}

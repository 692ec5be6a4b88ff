package records

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/stats"
)

// aheadKeys maps a split to its keys in the tables ahead and stat_deltas.
var aheadKeys = map[stats.By][2]string{
	"":               {`''`, `''`},
	stats.ByChannel:  {`channel`, `channel`},
	stats.ByCategory: {`category`, `category`},
	stats.ByCampaign: {`coalesce(nullif(campaign_id, '00000000-0000-0000-0000-000000000000')::text, '')`, `coalesce(campaign_id::text, '')`},
}

// aheadCountsSQL returns the total of each hour or day, and its largest parts.
const aheadCountsSQL = `
	SELECT at, total, key, n FROM (
		SELECT at, key, n, sum(n) OVER (PARTITION BY at)::bigint AS total, row_number() OVER (PARTITION BY at ORDER BY n DESC, key) AS place FROM (
			SELECT date_bin($4::interval, hour, '2000-01-01Z') AS at, key, sum(n)::bigint AS n FROM (
				SELECT hour, %s AS key, n FROM ahead WHERE %s
				UNION ALL
				SELECT send_hour, %s, CASE WHEN what IN ('accepted', 'moved') THEN n ELSE -n END FROM stat_deltas WHERE %s
			) a GROUP BY 1, 2
		) parts
	) p WHERE place <= $5 AND total > 0 AND n > 0 ORDER BY at, place`

// AheadCounts returns the number of a tenant's pushes that wait for a send time in each hour or day. It leaves out
// hours and days without pushes.
func (s *Store) AheadCounts(ctx context.Context, tenant uuid.UUID, q stats.AheadQuery) (counts []stats.AheadCount, err error) {
	width := time.Hour
	if q.By == stats.ByDay {
		width = 24 * time.Hour
	}
	args := []any{tenant, q.From, q.Until, width, stats.MostParts}
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
		fit("campaign_id", q.Campaign)
	}
	where := strings.Join(conditions, ` AND `)
	deltas := strings.NewReplacer(`hour >=`, `send_hour >=`, `hour <`, `send_hour <`).Replace(where)
	keys := aheadKeys[q.Split]
	sql := fmt.Sprintf(aheadCountsSQL, keys[0], where, keys[1], deltas)
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, sql, args...)
		counts, err = collectAhead(rows, q.Split != "")
		return err
	})
	return counts, err
}

// collectAhead groups the parts by hour or day.
func collectAhead(rows pgx.Rows, split bool) (counts []stats.AheadCount, err error) {
	var (
		at    time.Time
		total int64
		part  stats.AheadPart
	)
	_, err = pgx.ForEachRow(rows, []any{&at, &total, &part.Key, &part.Pushes}, func() error {
		if n := len(counts); n == 0 || !counts[n-1].At.Equal(at) {
			counts = append(counts, stats.AheadCount{At: at, Pushes: total})
		}
		if last := &counts[len(counts)-1]; split {
			last.Parts = append(last.Parts, part)
		}
		return nil
	})
	return counts, err
}

// CampaignStat returns a campaign's counts of all time, as of the statement: pushes accepted, deferred, refused, sent,
// failed, expired and canceled.
func CampaignStat(ctx context.Context, c pg.Batcher, tenant, campaign uuid.UUID) (s stats.Group, err error) {
	b := &pgx.Batch{}
	b.Queue(`
		SELECT sum(accepted)::bigint, sum(deferred)::bigint, sum(refused)::bigint, sum(sent)::bigint, sum(failed)::bigint, sum(expired)::bigint, sum(canceled)::bigint, sum(segments)::bigint FROM (
			SELECT accepted, deferred, refused, sent, failed, expired, canceled, segments FROM stats
			WHERE tenant_id = $1 AND step = '`+StepEver+`' AND of = '`+string(stats.ByCampaign)+`' AND at = 'epoch' AND key = $2::uuid::text
			UNION ALL
			SELECT sum(n) FILTER (WHERE what = 'accepted'), sum(deferred), sum(n) FILTER (WHERE what = 'refused'), sum(n) FILTER (WHERE what = 'sent'),
				sum(n) FILTER (WHERE what = 'failed'), sum(n) FILTER (WHERE what = 'expired'), sum(n) FILTER (WHERE what = 'canceled'), sum(segments)
			FROM stat_deltas WHERE tenant_id = $1 AND campaign_id = $2
		) all_time`, tenant, campaign).QueryRow(func(row pgx.Row) error {
		return row.Scan((*zeronull.Int8)(&s.Accepted), (*zeronull.Int8)(&s.Deferred), (*zeronull.Int8)(&s.Refused), (*zeronull.Int8)(&s.Sent),
			(*zeronull.Int8)(&s.Failed), (*zeronull.Int8)(&s.Expired), (*zeronull.Int8)(&s.Canceled), (*zeronull.Int8)(&s.Segments))
	})
	return s, c.SendBatch(ctx, b).Close()
}

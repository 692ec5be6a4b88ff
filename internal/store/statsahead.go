package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
)

// campaignStat returns the numbers of a campaign of all time, at the moment of the statement: how many of its pushes were sent, have
// failed, have expired and were canceled.
func campaignStat(ctx context.Context, c batcher, tenant, campaign uuid.UUID) (s push.Stat, err error) {
	b := &pgx.Batch{}
	b.Queue(`
		SELECT sum(accepted)::bigint, sum(deferred)::bigint, sum(refused)::bigint, sum(sent)::bigint, sum(failed)::bigint, sum(expired)::bigint, sum(canceled)::bigint FROM (
			SELECT accepted, deferred, refused, sent, failed, expired, canceled FROM stats
			WHERE tenant_id = $1 AND step = '`+stepEver+`' AND of = '`+string(push.ByCampaign)+`' AND at = 'epoch' AND key = $2::uuid::text
			UNION ALL
			SELECT sum(n) FILTER (WHERE what = 'accepted'), sum(deferred), sum(n) FILTER (WHERE what = 'refused'), sum(n) FILTER (WHERE what = 'sent'),
				sum(n) FILTER (WHERE what = 'failed'), sum(n) FILTER (WHERE what = 'expired'), sum(n) FILTER (WHERE what = 'canceled')
			FROM stat_deltas WHERE tenant_id = $1 AND campaign_id = $2
		) all_time`, [16]byte(tenant), [16]byte(campaign)).QueryRow(func(row pgx.Row) error {
		return row.Scan((*zeronull.Int8)(&s.Accepted), (*zeronull.Int8)(&s.Deferred), (*zeronull.Int8)(&s.Refused), (*zeronull.Int8)(&s.Sent),
			(*zeronull.Int8)(&s.Failed), (*zeronull.Int8)(&s.Expired), (*zeronull.Int8)(&s.Canceled))
	})
	return s, c.SendBatch(ctx, b).Close()
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
	deltas := strings.NewReplacer(`hour >=`, `send_hour >=`, `hour <`, `send_hour <`).Replace(where)
	sql := `
		SELECT date_bin($4::interval, hour, '2000-01-01Z') AS at, sum(n)::bigint FROM (
			SELECT hour, n FROM ahead WHERE ` + where + `
			UNION ALL
			SELECT send_hour, CASE WHEN what IN ('accepted', 'moved') THEN n ELSE -n END FROM stat_deltas WHERE ` + deltas + `
		) a GROUP BY 1 HAVING sum(n) > 0 ORDER BY 1`
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		rows, _ := c.Query(ctx, sql, args...)
		counts, err = pgx.CollectRows(rows, pgx.RowToStructByPos[push.AheadCount])
		return err
	})
	return counts, err
}

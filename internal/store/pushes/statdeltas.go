package pushes

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Every transaction that books, moves or ends pushes counts them in new rows of stat_deltas, so that no transaction waits
// for another. Pushes that end are counted by the statement that ends them (see [WithEvents]); bookings and moves are counted
// here.

// endedColumns lists the columns that a statement that ends pushes p returns for [CountEnded]. No text message was sent.
const endedColumns = `, p.tenant_id AS of_tenant, p.recipient_key AS of_key, p.channel AS of_channel, p.category AS of_category, p.level AS of_level,
	` + CountedCampaign + ` AS of_campaign, p.send_at AS of_send_at, p.status AS of_status, p.updated_at AS of_end, 0 AS of_segments`

// SentColumns lists the same columns for pushes that were sent, with an expression for the segments of their texts.
func SentColumns(segments string) string {
	return strings.Replace(endedColumns, `0 AS of_segments`, `coalesce(`+segments+`, 0) AS of_segments`, 1)
}

// CountedCampaign is an expression for the campaign that counts a push. A retry counts for none: the outcome of the first
// push is the recipient's outcome in the campaign.
const CountedCampaign = `CASE WHEN retry_of IS NULL THEN campaign_id END`

// LateBucket returns an expression for the bucket of an interval in a [stats.Lateness]: the first bucket with an upper
// bound that is not less.
func LateBucket(interval string) string {
	ms := `1000 * date_part('epoch', ` + interval + `)`
	return `CASE WHEN ` + ms + ` <= 1 THEN 0 ELSE ceil(ln(` + ms + `) / ln(` + strconv.FormatFloat(stats.LatenessGrowth, 'g', -1, 64) + `::float8))::smallint END`
}

// CountEnded returns a common table expression that counts the ended pushes of source. handed is an expression for when
// the provider received a sent push.
func CountEnded(source, handed string) string {
	return `, counted AS (
		INSERT INTO stat_deltas (tenant_id, shard, what, hour, send_hour, channel, category, level, campaign_id, n, segments, late)
		SELECT of_tenant, min(of_key & 255), of_status, ` + pg.HourOf(`of_end`) + `, ` + pg.HourOf(`of_send_at`) + `, of_channel, of_category, of_level, of_campaign, count(*),
			coalesce(sum(of_segments) FILTER (WHERE of_status = 'sent'), 0),
			array_agg(` + LateBucket(`(`+handed+`) - of_send_at`) + `) FILTER (WHERE of_status = 'sent')
		FROM ` + source + ` WHERE of_status <> 'scheduled'
		GROUP BY 1, 3, 4, 5, 6, 7, 8, 9
	)`
}

// The kinds of stat deltas, besides the statuses of ended pushes.
const (
	DeltaAccepted = "accepted"
	DeltaMoved    = "moved"
	DeltaRefused  = "refused"
	DeltaRule     = "rule"
)

// statDelta is the key of a row of stat_deltas: which pushes it counts.
type statDelta struct {
	tenant            uuid.UUID
	shard             int16 // of one of the pushes
	what              string
	hour, sendHour    int64 // Unix time in seconds; sendHour 0: none
	channel, category string
	level             push.Level
	campaign          uuid.UUID
	rule              string
}

// deltaCount is the number of pushes in a row of stat_deltas, and how many of them were deferred.
type deltaCount struct{ n, deferred int32 }

// deltaSQL adds stat deltas.
const deltaSQL = `
	INSERT INTO stat_deltas (tenant_id, shard, what, hour, send_hour, channel, category, campaign_id, rule, n, deferred, level)
	SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[], $8::uuid[], $9::text[], $10::int[], $11::int[], $12::smallint[])`

// queueDeltas adds a statement that inserts stat deltas to a batch.
func queueDeltas(b *pgx.Batch, all map[statDelta]deltaCount) {
	if len(all) > 0 {
		b.Queue(deltaSQL, deltaArgs(all)...)
	}
}

func deltaArgs(all map[statDelta]deltaCount) []any {
	n := len(all)
	var (
		tenants                            = make([]uuid.UUID, 0, n)
		campaigns                          = make([]zeronull.UUID, 0, n)
		shards, levels                     = make([]int16, 0, n), make([]int16, 0, n)
		whats, channels, categories, rules = make([]string, 0, n), make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
		hours                              = make([]time.Time, 0, n)
		sendHours                          = make([]zeronull.Timestamptz, 0, n)
		counts, deferred                   = make([]int32, 0, n), make([]int32, 0, n)
	)
	for of, c := range all {
		var sendHour time.Time
		if of.sendHour != 0 {
			sendHour = time.Unix(of.sendHour, 0).UTC()
		}
		tenants, shards, whats = append(tenants, of.tenant), append(shards, of.shard), append(whats, of.what)
		hours, sendHours = append(hours, time.Unix(of.hour, 0).UTC()), append(sendHours, zeronull.Timestamptz(sendHour))
		channels, categories, campaigns = append(channels, of.channel), append(categories, of.category), append(campaigns, zeronull.UUID(of.campaign))
		rules, counts, deferred = append(rules, of.rule), append(counts, c.n), append(deferred, c.deferred)
		levels = append(levels, int16(of.level.Index()))
	}
	return []any{tenants, shards, whats, hours, sendHours, channels, categories, campaigns, rules, counts, deferred, levels}
}

// unixHour returns the begin of the hour of a time, in Unix seconds.
func unixHour(at time.Time) int64 {
	s := at.Unix()
	return s - ((s%3600)+3600)%3600
}

// deltaOf returns the key of the row that counts a push, without its shard.
func deltaOf(p *push.Push, what string, hour, sendAt time.Time) statDelta {
	of := statDelta{tenant: p.Tenant, what: what, hour: unixHour(hour), sendHour: unixHour(sendAt), channel: p.Channel, category: p.Category, level: p.Level}
	if p.Retry.Of == uuid.Nil {
		of.campaign = p.Campaign
	}
	return of
}

// queueAccepted counts booked pushes.
func queueAccepted(b *pgx.Batch, granted []*booking.Decision) {
	all := make(map[statDelta]deltaCount, 4)
	shard := int16(0)
	for i := range granted {
		p := &granted[i].Push
		if i == 0 {
			shard = int16(push.Shard(push.RecipientKey(p.Tenant, p.Recipient)))
		}
		of := deltaOf(p, DeltaAccepted, p.CreatedAt, p.SendAt)
		of.shard = shard
		c := all[of]
		if c.n++; p.SendAt.After(p.RequestedSendAt) {
			c.deferred++
		}
		all[of] = c
	}
	queueDeltas(b, all)
}

// queueMoved counts a push that moves to another hour.
func queueMoved(b *pgx.Batch, p *push.Push, from, to time.Time) {
	if unixHour(from) == unixHour(to) {
		return
	}
	shard := int16(push.Shard(push.RecipientKey(p.Tenant, p.Recipient)))
	left, came := deltaOf(p, DeltaMoved, from, from), deltaOf(p, DeltaMoved, to, to)
	left.shard, came.shard = shard, shard
	queueDeltas(b, map[statDelta]deltaCount{left: {n: -1}, came: {n: 1}})
}

// QueueRefused counts refused pushes, in the transaction that refuses them. Each rule that refused is counted separately,
// besides all refusals together.
func QueueRefused(b *pgx.Batch, counts []stats.RefusedCount) {
	all := make(map[statDelta]deltaCount, len(counts))
	for _, one := range counts {
		of := statDelta{
			tenant: one.Tenant, what: DeltaRefused, hour: unixHour(one.Hour), channel: one.Channel, category: one.Category, level: one.Level, campaign: one.Campaign, rule: one.Rule,
		}
		if one.Rule != "" {
			of.what = DeltaRule
		}
		all[of] = deltaCount{n: all[of].n + int32(one.Pushes)}
	}
	queueDeltas(b, all)
}

// AddRefused counts refused pushes in a transaction of its own. After an error they may or may not have been counted.
func (s *Store) AddRefused(ctx context.Context, counts []stats.RefusedCount) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	return pg.Classify(pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		b := &pgx.Batch{}
		QueueRefused(b, counts)
		return c.SendBatch(ctx, b).Close()
	}))
}

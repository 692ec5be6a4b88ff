package pushes

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/webhook"
)

// QueueInsert adds the statements that store the granted pushes to a batch. The transaction has read the terms of their
// tenants.
func QueueInsert(b *pgx.Batch, granted []*booking.Decision, r *BookingRead) {
	pushes := r.Pushes
	for i := range granted {
		p := &granted[i].Push
		p.Own = r.Terms.IsOwn(p.Tenant, p.Channel, r.configured)
	}
	for table, order := range pg.ByTable(granted, func(g *booking.Decision) string { return pushes.At(g.Push.SendAt) }) {
		keys := byRecipientKey(granted, order)
		if slices.ContainsFunc(order, func(i int) bool { return granted[i].First != nil }) {
			b.Queue(pg.In(insertRetriesSQL, "{pushes}", table), append(insertArgs(granted, order, keys), retryArgs(granted, order)...)...)
			continue
		}
		b.Queue(pg.In(insertSQL, "{pushes}", table), insertArgs(granted, order, keys)...)
	}
	queueRetried(b, granted, pushes)
	queueAccepted(b, granted)
}

// byRecipientKey sorts order, indexes of granted pushes, by the recipients' keys, and returns the sorted keys. Two indexes begin
// with the key, so Postgres touches their pages in order. Pushes of one recipient stay in their order.
func byRecipientKey(granted []*booking.Decision, order []int) (keys []int64) {
	type keyed struct {
		key int64
		at  int
	}
	all := make([]keyed, len(order))
	for i, at := range order {
		p := &granted[at].Push
		all[i] = keyed{push.RecipientKey(p.Tenant, p.Recipient), at}
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	keys = make([]int64, len(all))
	for i, k := range all {
		keys[i], order[i] = k.key, k.at
	}
	return keys
}

// queueRetried records each granted retry in the first push of its chain, and in the audit log. The first push has ended,
// so its send time, and with it its table, no longer changes.
func queueRetried(b *pgx.Batch, granted []*booking.Decision, pushes pg.Parts) {
	for i := range granted {
		p, first := &granted[i].Push, granted[i].First
		if first == nil {
			continue
		}
		b.Queue(pg.In(`UPDATE {pushes} p SET retry_latest = $2 WHERE p.shard = ANY ($3::smallint[]) AND p.id = $1`, "{pushes}", pushes.At(first.SendAt)),
			first.ID, p.ID, pg.ShardsOf(push.RecipientKey(p.Tenant, p.Recipient)))
		d := auditlogs.Difference{}
		d.Show("retry", nil, p.ID)
		d.Show("send_at", nil, p.SendAt)
		auditlogs.QueueRecord(b, granted[i].By, p.Tenant, auditlog.PushRetry, p.Retry.Of.String(), d)
	}
}

// nearLimitSQL writes events for the webhooks that subscribe to them. It follows the statement that books the pushes, in
// the same transaction.
const nearLimitSQL = `
	INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
	SELECT w.id, n.tenant_id, n.push_id, '` + string(webhook.EventNearLimit) + `', json_build_object(
		'type', '` + string(webhook.EventNearLimit) + `', 'timestamp', utc(clock_timestamp()), 'data', json_build_object(
			'recipient', n.recipient, 'push_id', n.push_id, 'send_at', utc(n.send_at),
			'rule', n.rule, 'limit', n.most, 'window_seconds', n.seconds, 'used', n.used, 'remaining', greatest(0, n.most - n.used)))
	FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[], $6::int[], $7::float8[], $8::int[])
		AS n (push_id, tenant_id, recipient, send_at, rule, most, seconds, used)
	JOIN webhooks w ON w.tenant_id = n.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND '` + string(webhook.EventNearLimit) + `' = ANY (w.events)`

// QueueNearLimits adds a statement to a batch that writes an event for each rule that a granted push brings near its
// limit.
func QueueNearLimits(b *pgx.Batch, granted []*booking.Decision) {
	var (
		pushes, tenants   []uuid.UUID
		recipients, rules []string
		sendAt            []time.Time
		most, used        []int32
		seconds           []float64
	)
	for i := range granted {
		p := &granted[i].Push
		for _, u := range granted[i].Usage {
			if !booking.NearLimit(u) {
				continue
			}
			pushes, tenants = append(pushes, p.ID), append(tenants, p.Tenant)
			recipients, sendAt = append(recipients, p.Recipient), append(sendAt, p.SendAt)
			rules = append(rules, u.Rule.Name)
			most, used = append(most, int32(u.Rule.Limit)), append(used, int32(u.Used))
			seconds = append(seconds, u.Rule.Length(p.SendAt).Seconds())
		}
	}
	if len(pushes) > 0 {
		b.Queue(nearLimitSQL, pushes, tenants, recipients, sendAt, rules, most, seconds, used)
	}
}

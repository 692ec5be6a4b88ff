package pushes

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/webhook"
)

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
func QueueNearLimits(b *pgx.Batch, granted []booking.Decision) {
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

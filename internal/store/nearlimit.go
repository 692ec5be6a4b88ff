package store

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// nearLimitSQL writes events for the webhooks that want them. It stands behind
// the statement that books the pushes, in the same transaction.
const nearLimitSQL = `
	INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
	SELECT w.id, n.tenant_id, n.push_id, '` + string(push.EventNearLimit) + `', json_build_object(
		'type', '` + string(push.EventNearLimit) + `', 'timestamp', utc(clock_timestamp()), 'data', json_build_object(
			'recipient', n.recipient, 'push_id', n.push_id, 'send_at', utc(n.send_at),
			'rule', n.rule, 'limit', n.most, 'window_seconds', n.seconds, 'used', n.used, 'remaining', greatest(0, n.most - n.used)))
	FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[], $6::int[], $7::float8[], $8::int[])
		AS n (push_id, tenant_id, recipient, send_at, rule, most, seconds, used)
	JOIN webhooks w ON w.tenant_id = n.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND '` + string(push.EventNearLimit) + `' = ANY (w.events)`

// nearLimits are rules that pushes leave little of, one array per column.
type nearLimits struct {
	pushes, tenants [][16]byte
	recipients      []string
	sendAt          []time.Time
	rules           []string
	most, used      []int32
	seconds         []float64
}

// add notes the rules of which the booked push has at least four fifths used.
// One that allows a single send would say so with every push.
func (n *nearLimits) add(p push.Push, usage []quota.Usage) {
	for _, u := range usage {
		if u.Rule.Limit < 2 || 5*u.Used < 4*u.Rule.Limit {
			continue
		}
		n.pushes, n.tenants = append(n.pushes, p.ID), append(n.tenants, p.Tenant)
		n.recipients, n.sendAt = append(n.recipients, p.Recipient), append(n.sendAt, p.SendAt)
		n.rules = append(n.rules, u.Rule.Name)
		n.most, n.used = append(n.most, int32(u.Rule.Limit)), append(n.used, int32(u.Used))
		n.seconds = append(n.seconds, u.Rule.Window.Seconds())
	}
}

// queue adds the statement to what is sent to Postgres, if there is anything to
// write.
func (n *nearLimits) queue(b *pgx.Batch) {
	if len(n.pushes) > 0 {
		b.Queue(nearLimitSQL, n.pushes, n.tenants, n.recipients, n.sendAt, n.rules, n.most, n.seconds, n.used)
	}
}

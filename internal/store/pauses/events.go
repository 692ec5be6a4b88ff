package pauses

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/webhook"
)

// eventSQL writes an event for the webhooks that subscribe to it: of a tenant, or of all tenants for the operator's pauses.
const eventSQL = `
	INSERT INTO webhook_deliveries (webhook_id, tenant_id, event, payload)
	SELECT w.id, w.tenant_id, $2, json_build_object('type', $2::text, 'timestamp', utc(clock_timestamp()), 'data', $3::json)
	FROM webhooks w WHERE ($1 = '00000000-0000-0000-0000-000000000000'::uuid OR w.tenant_id = $1)
		AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND $2 = ANY (w.events)`

// event is the data of a webhook event about a pause: the pause as the API shows it, and more.
type event struct {
	ID        string      `json:"id"`
	Scope     pause.Scope `json:"scope"`
	Name      *string     `json:"name"`
	Reason    string      `json:"reason"`
	Until     *string     `json:"until"`
	Operator  bool        `json:"operator"`
	CreatedAt string      `json:"created_at"`
	EndedBy   string      `json:"ended_by,omitempty"` // for sending.resumed: request or until
}

// queueEvent adds a statement to a batch that writes a webhook event about a pause.
func queueEvent(b *pgx.Batch, p *pause.Pause, kind webhook.Event, endedBy string) {
	e := event{
		ID: p.ID.String(), Scope: p.Scope, Reason: p.Reason, Operator: p.Tenant == uuid.Nil,
		CreatedAt: p.CreatedAt.UTC().Format(time.RFC3339Nano), EndedBy: endedBy,
	}
	if p.Name != "" {
		e.Name = &p.Name
	}
	if !p.Until.IsZero() {
		e.Until = new(p.Until.UTC().Format(time.RFC3339Nano))
	}
	data, _ := json.Marshal(e)
	b.Queue(eventSQL, p.Tenant, string(kind), data)
}

// recordAllSQL writes an entry into the audit log of each tenant.
const recordAllSQL = `
	INSERT INTO audit_log (tenant_id, actor, actor_id, actor_name, action, target, difference)
	SELECT t.id, $1, $2, $3, $4, $5, $6 FROM tenants t WHERE t.deleting_at IS NULL`

// queueRecord adds a statement to a batch that writes an entry about a pause: into the log of its tenant, or of all tenants
// for the operator's pauses.
func queueRecord(b *pgx.Batch, by push.Actor, p *pause.Pause, action auditlog.Action, d auditlogs.Difference) {
	if p.Tenant != uuid.Nil {
		auditlogs.QueueRecord(b, by, p.Tenant, action, p.ID.String(), d)
		return
	}
	b.Queue(recordAllSQL, auditlogs.RecordArgs(by, p.Tenant, action, p.ID.String(), d)[1:]...)
}

// differenceOf returns the audit log's description of a change of a pause. One of the two is nil if the pause begins or ends.
func differenceOf(old, p *pause.Pause) auditlogs.Difference {
	d, of := auditlogs.Difference{}, func(p *pause.Pause) (scope, name, reason, until any) {
		if p == nil {
			return nil, nil, nil, nil
		}
		if !p.Until.IsZero() {
			until = p.Until.UTC().Format(time.RFC3339Nano)
		}
		return textOrNone(string(p.Scope)), textOrNone(p.Name), textOrNone(p.Reason), until
	}
	scope, name, reason, until := of(old)
	toScope, toName, toReason, toUntil := of(p)
	d.Show("scope", scope, toScope)
	d.Show("name", name, toName)
	d.Show("reason", reason, toReason)
	d.Show("until", until, toUntil)
	return d
}

// textOrNone returns a text, or nil if it is empty.
func textOrNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

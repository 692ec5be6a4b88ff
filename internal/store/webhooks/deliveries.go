package webhooks

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/webhook"
)

// deliveryColumns are the columns that scanDelivery reads, of webhook_deliveries p.
const deliveryColumns = `p.id, p.seq, p.push_id, p.event, p.payload, p.status, p.attempts, p.next_at, p.last_status, p.last_error, p.created_at, p.ended_at`

func collectDelivery(row pgx.CollectableRow) (webhook.Delivery, error) { return scanDelivery(row) }

// scanDelivery reads one row of [deliveryColumns], and the columns after them into more.
func scanDelivery(row pgx.CollectableRow, more ...any) (webhook.Delivery, error) {
	var d webhook.Delivery
	err := row.Scan(append([]any{&d.ID, &d.Seq, (*zeronull.UUID)(&d.Push), (*string)(&d.Event), (*[]byte)(&d.Payload), (*string)(&d.Status), &d.Attempts,
		&d.NextAt, &d.LastStatus, &d.LastError, &d.CreatedAt, (*zeronull.Timestamptz)(&d.EndedAt)}, more...)...)
	return d, err
}

// Deliveries returns up to limit of the deliveries of a tenant's webhook before the one with the given Seq, the
// newest first; 0 starts from the newest. Like [pushes.Store.List], it may return fewer.
func (s *Store) Deliveries(ctx context.Context, tenant, hook uuid.UUID, f webhook.DeliveryFilter, before int64, limit int) (page webhook.DeliveryPage, err error) {
	q := deliveryQuery(f, tenant, hook, before, limit)
	position := func(d webhook.Delivery) int64 { return d.Seq }
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var last int64
		rows, _ := c.Query(ctx, q.SQL(), q.Args...)
		deliveries, next, _, err := pg.CollectPage(rows, q, &last, []any{&last}, position, scanDelivery)
		if page = (webhook.DeliveryPage{Deliveries: deliveries}); next != nil {
			page.Next = *next
		}
		return err
	})
	return page, err
}

// deliveryQuery returns the query of a page of deliveries that match a filter, before a Seq.
func deliveryQuery(f webhook.DeliveryFilter, tenant, hook uuid.UUID, before int64, limit int) pg.PageQuery {
	if before == 0 {
		before = math.MaxInt64
	}
	q := pg.PageQuery{
		Limit: limit, Scan: limit + 1, Item: "SELECT * FROM webhook_deliveries WHERE id = s.id", Columns: deliveryColumns, Position: "p.seq", Order: "p.seq DESC", Backward: "p.seq",
		Size: `octet_length(p.payload::text) + 500`, Args: []any{hook, before, tenant},
	}
	bounds := `p.webhook_id = $1 AND p.seq < $2 AND p.tenant_id = $3`
	if f.Push != uuid.Nil { // an index orders a push's events
		q.Args = append(q.Args, f.Push)
		bounds += fmt.Sprintf(` AND p.push_id = $%d`, len(q.Args))
	}
	fits := `true`
	for column, value := range map[string]string{"status": string(f.Status), "event": string(f.Event)} {
		if value != "" {
			q.Args, q.Scan = append(q.Args, value), pg.MaxScanned
			fits += fmt.Sprintf(` AND p.%s = $%d`, column, len(q.Args))
		}
	}
	q.Scanned = fmt.Sprintf(`SELECT p.id, p.seq, %s AS fits FROM webhook_deliveries p WHERE %s ORDER BY p.seq DESC LIMIT %d`, fits, bounds, q.Scan)
	return q
}

// AddTestDelivery writes a test event, which belongs to no push, for one webhook.
func (s *Store) AddTestDelivery(ctx context.Context, w webhook.Webhook) (webhook.Delivery, error) {
	return auditlogs.RecordOnce(ctx, s.db, w.Tenant, collectDelivery, recordDelivery(auditlog.WebhookTest, w), `
		INSERT INTO webhook_deliveries AS p (webhook_id, tenant_id, event, payload)
		VALUES ($1, $2, $3, json_build_object('type', $3::text, 'timestamp', utc(clock_timestamp()), 'data', json_build_object('webhook_id', $1::uuid)))
		RETURNING `+deliveryColumns, w.ID, w.Tenant, string(webhook.EventTest))
}

// recordDelivery returns a function that adds a delivery of a webhook to the audit log.
func recordDelivery(action auditlog.Action, w webhook.Webhook) func(ctx context.Context, tx pgx.Tx, one webhook.Delivery) error {
	return func(ctx context.Context, tx pgx.Tx, one webhook.Delivery) error {
		d := auditlogs.Difference{}
		d.Show("delivery", nil, one.ID)
		return recordWebhook(action, d)(ctx, tx, w)
	}
}

// Replay sends a delivery of the webhook again, with a full number of attempts. A waiting delivery is sent now. A
// delivery that is being sent stays unchanged.
func (s *Store) Replay(ctx context.Context, tenant, hook, id uuid.UUID) (webhook.Delivery, error) {
	return auditlogs.RecordOnce(ctx, s.db, tenant, collectDelivery, recordDelivery(auditlog.WebhookReplay, webhook.Webhook{ID: hook, Tenant: tenant}), replaySQL+` AND p.id = $2 RETURNING `+deliveryColumns, hook, id)
}

// replaySQL makes deliveries of a webhook due now, unless they are being sent.
const replaySQL = `
	UPDATE webhook_deliveries p SET
		status = CASE WHEN p.status = 'sending' THEN p.status ELSE 'waiting' END,
		attempts = CASE WHEN p.status = 'sending' THEN p.attempts ELSE 0 END,
		next_at = CASE WHEN p.status = 'sending' THEN p.next_at ELSE clock_timestamp() END,
		queued_at = clock_timestamp(), ended_at = NULL
	WHERE p.webhook_id = $1`

// ReplayFailed sends a webhook's failed deliveries again: up to limit events that were created since a time, the
// oldest first. It returns their number.
func (s *Store) ReplayFailed(ctx context.Context, tenant, hook uuid.UUID, since time.Time, limit int) (n int, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, replaySQL+` AND p.id IN (
				SELECT id FROM webhook_deliveries
				WHERE webhook_id = $1 AND status = 'failed' AND created_at >= $2 ORDER BY seq LIMIT $3 FOR UPDATE SKIP LOCKED)`,
				hook, since, limit)
			if n = int(tag.RowsAffected()); err != nil || n == 0 {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("since", nil, since)
			d.Show("deliveries", nil, n)
			return auditlogs.Record(ctx, tx, tenant, auditlog.WebhookReplay, hook.String(), d)
		})
	})
	return n, err
}

// SweepDeliveries deletes up to limit deliveries: those that were created or replayed longer ago than keep, and all
// deliveries of deleted webhooks. If it deletes fewer than limit, it also deletes the rows of deleted webhooks. It
// returns the number of deleted deliveries.
func (s *Store) SweepDeliveries(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, `
			WITH old AS (
				SELECT id FROM webhook_deliveries WHERE queued_at < statement_timestamp() - $1::interval LIMIT $2 FOR UPDATE SKIP LOCKED
			), ownerless AS (
				SELECT d.id FROM webhooks w JOIN webhook_deliveries d ON d.webhook_id = w.id
				WHERE w.deleted_at IS NOT NULL LIMIT $2 FOR UPDATE OF d SKIP LOCKED
			)
			DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM old UNION SELECT id FROM ownerless)`,
			keep, limit)
		if n = int(tag.RowsAffected()); err != nil || n >= limit {
			return err
		}
		// Wait until every transaction that may have missed the deletion, and written an event, has ended.
		_, err = c.Exec(ctx, `
			DELETE FROM webhooks w WHERE w.deleted_at < statement_timestamp() - $1::interval
				AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.webhook_id = w.id)`, max(time.Minute, 4*s.db.Cfg.Timeout))
		return err
	})
	return n, err
}

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// DeliveryStatus is where the delivery of an event stands.
type DeliveryStatus string

// The states of a delivery. The last two are final, but for a replay.
const (
	DeliveryWaiting DeliveryStatus = "waiting"
	DeliverySending DeliveryStatus = "sending"
	Delivered       DeliveryStatus = "delivered"
	DeliveryFailed  DeliveryStatus = "failed" // given up
)

// DeliveryStatuses lists the states, in the order of life.
var DeliveryStatuses = []DeliveryStatus{DeliveryWaiting, DeliverySending, Delivered, DeliveryFailed}

// Delivery is an event on its way to a webhook.
type Delivery struct {
	ID         uuid.UUID
	Seq        int64     // grows with every event
	Push       uuid.UUID // Nil: it is about no push
	Event      push.Event
	Payload    json.RawMessage
	Status     DeliveryStatus
	Attempts   int
	NextAt     time.Time // of DeliveryWaiting: when it is tried next, at the earliest
	LastStatus int       // of the last answer; 0: there was none
	LastError  string    // why the last attempt failed
	CreatedAt  time.Time
	EndedAt    time.Time // zero until it ends
}

const deliveryColumns = `d.id, d.seq, d.push_id, d.event, d.payload, d.status, d.attempts, d.next_at, d.last_status, d.last_error, d.created_at, d.ended_at`

func collectDelivery(row pgx.CollectableRow) (Delivery, error) {
	var (
		d     Delivery
		about pgtype.UUID
		ended pgtype.Timestamptz
	)
	err := row.Scan((*[16]byte)(&d.ID), &d.Seq, &about, (*string)(&d.Event), (*[]byte)(&d.Payload), (*string)(&d.Status), &d.Attempts,
		&d.NextAt, &d.LastStatus, &d.LastError, &d.CreatedAt, &ended)
	d.Push, d.EndedAt = about.Bytes, ended.Time
	return d, err
}

// DeliveryFilter chooses among a webhook's deliveries. Zero fields choose all.
type DeliveryFilter struct {
	Status DeliveryStatus
	Event  push.Event
	Push   uuid.UUID
}

// Deliveries returns up to limit of a webhook's deliveries, the newest first,
// from before the one with the given Seq; 0: from the newest.
func (s *Store) Deliveries(ctx context.Context, webhook uuid.UUID, f DeliveryFilter, before int64, limit int) ([]Delivery, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	args := []any{[16]byte(webhook), before, limit}
	where := []string{`d.webhook_id = $1`, `d.seq < $2`}
	add := func(column string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf(`%s = $%d`, column, len(args)))
	}
	if f.Status != "" {
		add(`d.status`, string(f.Status))
	}
	if f.Event != "" {
		add(`d.event`, string(f.Event))
	}
	if f.Push != uuid.Nil {
		add(`d.push_id`, [16]byte(f.Push))
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	rows, _ := s.pool.Query(ctx, `SELECT `+deliveryColumns+` FROM webhook_deliveries d WHERE `+strings.Join(where, ` AND `)+` ORDER BY d.seq DESC LIMIT $3`, args...)
	deliveries, err := pgx.CollectRows(rows, collectDelivery)
	return deliveries, classify(err)
}

// AddTestDelivery writes an event for one webhook alone, about no push.
func (s *Store) AddTestDelivery(ctx context.Context, w Webhook) (Delivery, error) {
	return s.oneDelivery(ctx, `
		INSERT INTO webhook_deliveries AS d (webhook_id, tenant_id, event, payload)
		VALUES ($1, $2, $3, json_build_object('type', $3::text, 'timestamp', utc(clock_timestamp()), 'data', json_build_object('webhook_id', $1::uuid)))
		RETURNING `+deliveryColumns, [16]byte(w.ID), [16]byte(w.Tenant), string(push.EventTest))
}

// Replay has a delivery of the webhook sent again, or now if it waits, with all
// of its attempts before it. One that is being sent is left alone.
func (s *Store) Replay(ctx context.Context, webhook, id uuid.UUID) (Delivery, error) {
	return s.oneDelivery(ctx, replaySQL+` AND d.id = $2 RETURNING `+deliveryColumns, [16]byte(webhook), [16]byte(id))
}

const replaySQL = `
	UPDATE webhook_deliveries d SET
		status = CASE WHEN d.status = 'sending' THEN d.status ELSE 'waiting' END,
		attempts = CASE WHEN d.status = 'sending' THEN d.attempts ELSE 0 END,
		next_at = CASE WHEN d.status = 'sending' THEN d.next_at ELSE clock_timestamp() END,
		queued_at = clock_timestamp(), ended_at = NULL
	WHERE d.webhook_id = $1`

// ReplayFailed has what was given up of a webhook sent again: events since a
// time, the oldest first, up to limit of them. It returns how many those are.
func (s *Store) ReplayFailed(ctx context.Context, webhook uuid.UUID, since time.Time, limit int) (n int, err error) {
	err = s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, replaySQL+` AND d.id IN (
			SELECT id FROM webhook_deliveries
			WHERE webhook_id = $1 AND status = 'failed' AND created_at >= $2 ORDER BY seq LIMIT $3 FOR UPDATE SKIP LOCKED)`,
			[16]byte(webhook), since, limit)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}

func (s *Store) oneDelivery(ctx context.Context, sql string, args ...any) (Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	rows, _ := s.pool.Query(ctx, sql, args...)
	d, err := pgx.CollectExactlyOneRow(rows, collectDelivery)
	return d, classify(err)
}

// SweepDeliveries removes up to limit deliveries: those made or replayed longer
// ago than keep, and those of webhooks that were deleted, whose rows follow. It
// returns how many there were.
func (s *Store) SweepDeliveries(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	err = s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
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
		// Whoever wrote an event without having seen the end of the webhook has
		// committed by now, or never will.
		_, err = c.Exec(ctx, `
			DELETE FROM webhooks w WHERE w.deleted_at < statement_timestamp() - $1::interval
				AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.webhook_id = w.id)`, max(time.Minute, 4*s.cfg.Timeout))
		return err
	})
	return n, err
}

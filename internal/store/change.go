package store

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// Cancel ends a push that still waits, and returns it. A push that is canceled already is returned as well. Any other
// comes with [push.ErrNotCancelable], or there is none: [push.ErrNotFound].
func (s *Store) Cancel(ctx context.Context, tenant, id uuid.UUID) (p push.Push, err error) {
	err = s.change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `
			WITH canceled AS (
				UPDATE pushes SET status = 'canceled', gen = gen + 1, updated_at = clock_timestamp()
				WHERE id = $1 AND tenant_id = $2 AND status = 'scheduled' RETURNING recipient_key
			)`+fewerSQL+`(SELECT recipient_key FROM canceled)`, [16]byte(id), [16]byte(tenant))
		if err == nil {
			p, err = readPush(ctx, c, tenant, id)
		}
		return err
	})
	if err == nil && p.Status != push.Canceled {
		err = push.ErrNotCancelable
	}
	return p, err
}

// Reschedule moves the push of the order's only draft to the draft's send time, if [booking.Decider.Move] grants it. If
// not, the push keeps its time. A push that does not wait any more comes with [push.ErrNotReschedulable].
func (s *Store) Reschedule(ctx context.Context, o booking.Order) (booking.Decision, error) {
	var v booking.Decision
	err := s.change(ctx, o.Tenant(), func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		r := newBookingRead([]order{{o, true}}, true, 0)
		decider, err := r.start(ctx, c, lockSQL, "FOR UPDATE")
		if err != nil {
			return err
		}
		v, err = decider.Move(o)
		if err := errors.Join(r.close(), err); err != nil {
			return err
		}
		failpoint.Hit(failpoint.MoveLocked)
		return writeMove(ctx, c, decider.Granted)
	})
	return v, err
}

func writeMove(ctx context.Context, c *pgxpool.Conn, granted []booking.Grant) error {
	b := &pgx.Batch{}
	for _, g := range granted {
		b.Queue(`
			UPDATE pushes SET send_at = $2, next_at = $2, requested_send_at = $3, expires_at = $4,
				gen = $5, bulk = $6, updated_at = clock_timestamp()
			WHERE id = $1`, [16]byte(g.Push.ID), g.Push.SendAt, g.Push.RequestedSendAt, g.Push.ExpiresAt, g.Push.Gen, g.Push.Bulk)
		(*heldCrowds)(nil).queueChanged(b, granted)
		queueNearLimits(b, granted)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.MoveCommitting)
	return res.Close()
}

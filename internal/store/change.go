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

// cancelSQL takes the row in live first, as all do that change a push: so a claim has it, or the cancel. A move that is
// committed meanwhile hides the row from the statement, which then changes nothing and is run again.
const cancelSQL = `
	WITH taken AS (
		DELETE FROM live l USING pushes p
		WHERE p.id = $1 AND p.tenant_id = $2
			AND l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.send_at = p.send_at AND l.push_id = p.id AND l.token IS NULL
		RETURNING l.push_id
	), canceled AS (
		UPDATE pushes p SET status = 'canceled', freed = true, plan = plan + 1, updated_at = clock_timestamp()
		FROM taken WHERE p.id = taken.push_id RETURNING p.recipient_key
	)` + fewerSQL + `(SELECT recipient_key FROM canceled)`

// cancelTries is how often a cancel is run. Each move, or attempt that ends, can cost it one.
const cancelTries = 20

// Cancel ends a push that still waits, and returns it. A push that is canceled already is returned as well. Any other
// comes with [push.ErrNotCancelable], or there is none: [push.ErrNotFound].
func (s *Store) Cancel(ctx context.Context, tenant, id uuid.UUID) (p push.Push, err error) {
	err = s.change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		for range cancelTries {
			if _, err = c.Exec(ctx, cancelSQL, [16]byte(id), [16]byte(tenant)); err != nil {
				return err
			}
			if p, err = readPush(ctx, c, tenant, id); err != nil || p.Status != push.Scheduled {
				return err
			}
		}
		return nil
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
		decider, err := r.start(ctx, c, lockSQL, true)
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
			UPDATE live SET send_at = $2, next_at = $2, expires_at = $3, plan = $4, bulk = $5, phase = $5::bool::int
			WHERE recipient_key = (SELECT recipient_key FROM pushes WHERE id = $1) AND push_id = $1`,
			[16]byte(g.Push.ID), g.Push.SendAt, g.Push.ExpiresAt, g.Push.Gen, g.Push.Bulk)
		b.Queue(`
			UPDATE pushes SET send_at = $2, next_at = $2, requested_send_at = $3, expires_at = $4, plan = $5, updated_at = clock_timestamp()
			WHERE id = $1`, [16]byte(g.Push.ID), g.Push.SendAt, g.Push.RequestedSendAt, g.Push.ExpiresAt, g.Push.Gen)
		(*heldCrowds)(nil).queueChanged(b, granted)
		queueNearLimits(b, granted)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.MoveCommitting)
	return res.Close()
}

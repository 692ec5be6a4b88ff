package schedule

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// Push returns a tenant's push with its sends, or [push.ErrNotFound].
func (s *Service) Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	return s.store.Push(ctx, tenant, id)
}

// List returns up to limit of a tenant's pushes after a position, by send time and id, without their sends.
func (s *Service) List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error) {
	return s.store.List(ctx, tenant, f, after, limit)
}

// Answer reports whether a push could be booked.
type Answer struct {
	Refusal
	OptedOut booking.OptOuts // opt-outs that match the push
}

// Allowed reports whether the push could be booked.
func (a *Answer) Allowed() bool { return a.Refusal.Allowed() && !a.OptedOut.Any() }

// Check reports whether a push could be booked now for the request's recipient at its send time. Where Submit would
// move the push out of quiet hours, Check reports quiet hours and the next free time. IT BOOKS NOTHING.
func (s *Service) Check(ctx context.Context, tenant uuid.UUID, r Request) (*Answer, error) {
	d, err := s.planFor(ctx, tenant, r, nil, nil) // a check needs no address and no message
	if err != nil {
		return nil, err
	}
	x, kind := newReading(d.Recipient(), nil), booking.KindOf(&d.Push)
	defer x.permit.end()
	decision, err := s.decide(ctx, x, kind, d.Push.SendAt, 2)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return s.answer(Refusal{Recipient: r.Recipient, SendAt: d.Push.SendAt, Decision: decision}, x.of.Person.OptOuts.Of(kind)), nil
}

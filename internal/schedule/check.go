package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Push returns a tenant's push with its sends, or [push.ErrNotFound].
func (s *Service) Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	p, err := s.store.Push(ctx, tenant, id)
	s.heldByChannel(&p)
	return p, err
}

// List returns up to limit of a tenant's pushes after a position, by send time and id, without their sends.
func (s *Service) List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error) {
	page, err := s.store.List(ctx, tenant, f, after, limit)
	for i := range page.Pushes {
		s.heldByChannel(&page.Pushes[i])
	}
	return page, err
}

// heldByChannel sets the hold of a due push whose channel sends nothing now.
func (s *Service) heldByChannel(p *push.Push) {
	now := s.now()
	if s.cfg.Own == nil || p.Status != push.Scheduled || p.NextAt.After(now) || p.Held.Now(now) {
		return
	}
	if problem, since := s.cfg.Own.Problem(p.Tenant, p.Channel); problem != "" {
		p.Held = push.Hold{By: push.ChannelBy + problem, Since: later(p.NextAt, since)}
	}
}

// Answer reports whether a push could be booked.
type Answer struct {
	Refusal
	OptedOut booking.OptOuts // opt-outs that match the push

	Suppressed *suppression.Entry // suppresses its address; nil: nothing does; set by [Service.Check] only
	Paused     bool               // a pause would stop it now; set by [Service.Check] only

	// The channel, and the message after its templates were rendered; nil: the request has none.
	Channel string
	Message json.RawMessage
}

// Allowed reports whether the push could be booked.
func (a *Answer) Allowed() bool {
	return a.Refusal.Allowed() && !a.OptedOut.Any() && a.Suppressed == nil
}

// Check reports whether a push could be booked now for the request's recipient at its send time. Where Submit would
// move the push out of quiet hours, Check reports quiet hours and the next free time. A request may have no message. IT BOOKS NOTHING.
func (s *Service) Check(ctx context.Context, tenant uuid.UUID, r Request) (*Answer, error) {
	d, err := s.plan(ctx, tenant, r, s.cfg.checkMessage, nil)
	if err != nil {
		return nil, err
	}
	x, kind := newReading(d.Recipient(), nil), booking.KindOf(&d.Push)
	defer x.permit.end()
	decision, err := s.decide(ctx, x, kind, d.Push.SendAt, 2)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	found := s.answer(Refusal{Recipient: r.Recipient, SendAt: d.Push.SendAt, Decision: decision}, x.of.Person.OptOuts.Of(kind))
	found.Channel, found.Message, found.Paused = d.Push.Channel, d.Push.Message, s.paused(&d.Push)
	found.Suppressed, err = s.store.SuppressionOf(ctx, tenant, d.Push.Channel, x.of.Person.AddressOf(&d.Push))
	if found.Suppressed != nil {
		found.Next, found.Previous = time.Time{}, time.Time{}
	}
	return found, err
}

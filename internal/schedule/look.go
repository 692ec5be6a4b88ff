package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// Push returns a tenant's push with its sends, or [push.ErrNotFound].
func (s *Service) Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	return s.store.Push(ctx, tenant, id)
}

// List returns up to limit of a tenant's pushes behind a position, by send
// time and id, without their sends.
func (s *Service) List(ctx context.Context, tenant uuid.UUID, f store.Filter, after store.Position, limit int) ([]push.Push, error) {
	return s.store.List(ctx, tenant, f, after, limit)
}

// Check says whether a push could be booked now for the request's recipient
// and send time, as Submit would decide. IT BOOKS NOTHING.
func (s *Service) Check(ctx context.Context, tenant uuid.UUID, r Request) (*Refusal, error) {
	d, err := s.plan(tenant, r)
	if err != nil {
		return nil, err
	}
	who := quota.Recipient{Tenant: tenant, ID: r.Recipient}
	view, err := s.look(ctx, who, s.cfg.Policy.Around(d.Push.SendAt, 2))
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return s.refuse(ctx, who, d.Push.SendAt, view, uuid.Nil)
}

// Quota says how full every rule is for a recipient around a time, and
// whether one more send would be allowed then. IT BOOKS NOTHING.
func (s *Service) Quota(ctx context.Context, r quota.Recipient, at time.Time) ([]quota.Usage, quota.Decision, error) {
	view, err := s.look(ctx, r, s.cfg.Policy.Around(at, 2))
	if err != nil {
		return nil, quota.Decision{}, fmt.Errorf("recipient quota: %w", err)
	}
	d, err := s.decide(ctx, r, at, view, uuid.Nil)
	return s.cfg.Policy.Usage(view.Bookings, at), d, err
}

// Slots returns a recipient's bookings in [from, until], and the intervals
// that overlap it in which nothing can be booked, sorted by their beginning.
func (s *Service) Slots(ctx context.Context, r quota.Recipient, from, until time.Time) ([]quota.Interval, []store.HeldBooking, error) {
	reach := s.cfg.Policy.Reach()
	held, err := s.store.Bookings(ctx, r, from.Add(-2*reach), until.Add(2*reach))
	if err != nil {
		return nil, nil, fmt.Errorf("slots: %w", err)
	}
	var (
		all     []quota.Booking
		inside  []store.HeldBooking
		blocked []quota.Interval
	)
	for _, h := range held {
		all = append(all, h.Booking)
		if !h.At.Before(from) && !h.At.After(until) {
			inside = append(inside, h)
		}
	}
	for _, i := range s.cfg.Policy.Blocked(all) {
		if (i.From.IsZero() || i.From.Before(until)) && (i.Until.IsZero() || i.Until.After(from)) {
			blocked = append(blocked, i)
		}
	}
	return blocked, inside, nil
}

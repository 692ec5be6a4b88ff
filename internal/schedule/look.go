package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Push returns a tenant's push with its sends, or [push.ErrNotFound].
func (s *Service) Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	return s.store.Push(ctx, tenant, id)
}

// List returns up to limit of a tenant's pushes behind a position, by send time and id, without their sends.
func (s *Service) List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error) {
	return s.store.List(ctx, tenant, f, after, limit)
}

// Check says whether a push could be booked now for the request's recipient and send time, as Submit would decide. IT
// BOOKS NOTHING.
func (s *Service) Check(ctx context.Context, tenant uuid.UUID, r Request) (*Refusal, error) {
	d, err := s.planFor(tenant, r, nil) // a question has no address and no message
	if err != nil {
		return nil, err
	}
	who := quota.Recipient{Tenant: tenant, ID: r.Recipient}
	x := newReading(who, nil)
	defer x.turn.end()
	decision, err := s.decide(ctx, x, d.Push.SendAt, 2)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return &Refusal{Recipient: who.ID, SendAt: d.Push.SendAt, Decision: decision}, nil
}

// Quota says how full every rule is for a recipient around a time, and whether one more send would be allowed then. IT
// BOOKS NOTHING.
func (s *Service) Quota(ctx context.Context, r quota.Recipient, at time.Time) ([]quota.Usage, quota.Decision, error) {
	x := newReading(r, nil)
	defer x.turn.end()
	d, err := s.decide(ctx, x, at, 2)
	if err != nil {
		return nil, d, fmt.Errorf("recipient quota: %w", err)
	}
	return s.cfg.Policy.Usage(x.view.Timeline, at), d, nil
}

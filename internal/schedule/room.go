package schedule

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Campaigns book their recipients in their own transactions. Room and Follow give these bookings what a submit has: the
// tenant's caps, and what happens after a commit.

// Room is an amount of a tenant's caps that is reserved during a booking. End it with Settle or Doubt. It is nil for a
// tenant without caps.
type Room struct{ reserved *reservation }

// Reserve reserves room for drafts on the days of their send times, and room for all of them on each of the other days.
func (s *Service) Reserve(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, drafts []booking.Draft, others []booking.Day) (*Room, error) {
	caps := own.Over(s.cfg.Caps)
	if caps == (push.Caps{}) {
		return nil, nil
	}
	days := booking.Order{Drafts: drafts}.Days()
	for _, day := range others {
		days[day] = len(drafts)
	}
	r, err := s.caps.reserve(ctx, tenant, caps, len(drafts), days)
	if err != nil || r == nil {
		return nil, err
	}
	return &Room{r}, nil
}

// Usage returns the usage of the caps, without the room itself.
func (r *Room) Usage() *booking.CapUsage {
	if r == nil {
		return nil
	}
	return r.reserved.CapUsage
}

// Settle ends the reservation. The room of the pushes that the decisions booked stays used; nil decisions release all
// of it.
func (r *Room) Settle(decisions []booking.Decision) {
	if r != nil {
		r.reserved.settle(decisions)
	}
}

// Doubt ends a reservation whose room may have been used, entirely or in part.
func (r *Room) Doubt() {
	if r != nil {
		r.reserved.doubt()
	}
}

// Follow completes a decision that a campaign's transaction has committed: it drops the recipient from the cache, arms
// the lane, and counts metrics and shadow rules.
func (s *Service) Follow(d *booking.Draft, v *booking.Decision) {
	switch v.Outcome {
	case booking.Booked:
		s.cache.Forget(d.Recipient())
		s.wake(&v.Push)
		s.metrics.Submitted("accepted", "")
		if v.Shadow != nil {
			s.cfg.Shadows.count(&v.Push, v.Shadow)
		}
	case booking.NoPlace:
		for i := range v.Quota.Violations {
			s.metrics.Submitted("refused", s.metrics.ruleLabel(v.Quota.Violations[i].Rule.Name))
		}
	case booking.OptedOut:
		s.metrics.Submitted("refused", booking.OptedOutReason)
	case booking.Suppressed:
		s.metrics.Submitted("refused", suppression.Failed)
	case booking.OverCap:
		s.metrics.Submitted("capped", v.Capped.Cap)
	case booking.NoAddress, booking.NoChannel:
		s.CountInvalid(1)
	}
}

// FollowEnd completes the end of a push that did not go through a claim: it drops the recipient from the cache, because
// the place is free again.
func (s *Service) FollowEnd(e booking.Ended) {
	s.cache.Forget(quota.Recipient{Tenant: e.Tenant, ID: e.Recipient})
}

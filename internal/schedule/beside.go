package schedule

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// What is booked beside the service, as recipients of campaigns are, keeps the tenants' caps and is followed by the same things
// as a submit.

// Room is room under a tenant's caps that is reserved while something is booked. It must be ended by Settle or Doubt. That of a tenant without
// caps is nil.
type Room struct{ reserved *reservation }

// Reserve reserves room for drafts, on the days that they name and on others, on which all of them may land.
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

// Usage is how much of the caps is used beside the room.
func (r *Room) Usage() *booking.CapUsage {
	if r == nil {
		return nil
	}
	return r.reserved.CapUsage
}

// Settle ends the reservation. What was booked of these decisions stays used; without any, nothing was.
func (r *Room) Settle(decisions []booking.Decision) {
	if r != nil {
		r.reserved.settle(decisions)
	}
}

// Doubt ends a reservation of which any room may have been used.
func (r *Room) Doubt() {
	if r != nil {
		r.reserved.doubt()
	}
}

// Follow does what follows a decision about a draft that was booked beside the service, once it is committed: the cache forgets the
// recipient, the lane is armed, and the metrics and shadow rules count.
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
			s.metrics.Submitted("refused", s.ruleLabel(v.Quota.Violations[i].Rule.Name))
		}
	case booking.OptedOut:
		s.metrics.Submitted("refused", booking.OptedOutReason)
	case booking.OverCap:
		s.metrics.Submitted("capped", v.Capped.Cap)
	case booking.NoAddress:
		s.CountInvalid(1)
	}
}

// FollowEnd does what follows the end of a push that did not go through a claim: its place is given back.
func (s *Service) FollowEnd(e booking.Ended) {
	s.cache.Forget(quota.Recipient{Tenant: e.Tenant, ID: e.Recipient})
}

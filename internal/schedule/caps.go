package schedule

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// underCaps runs do with room reserved on the given days.
func (s *Service) underCaps(ctx context.Context, tenant uuid.UUID, caps push.Caps, days map[booking.Day]int, o booking.Order,
	do func(context.Context, booking.Order) ([]booking.Decision, error),
) ([]booking.Decision, error) {
	reserved, err := s.caps.reserve(ctx, tenant, caps, len(o.Drafts), days)
	if err != nil {
		return nil, err
	}
	if reserved != nil {
		o.CapUsage = reserved.CapUsage
	}
	decisions, err := do(ctx, o)
	switch {
	case err != nil:
		reserved.doubt()
	case !o.Books(decisions):
		reserved.release()
	default:
		reserved.settle(decisions)
	}
	return decisions, err
}

// CapUsage returns a tenant's caps and their current usage, counted in Postgres: pending pushes, and recipients of one
// day. Each count stops at most.
func (s *Service) CapUsage(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, day booking.Day, most int) (booking.CapUsage, error) {
	usage := booking.CapUsage{Caps: own.Over(s.cfg.Caps), Days: map[booking.Day]int{}}
	var err error
	if usage.Pending, err = s.store.Pending(ctx, tenant, most); err == nil {
		usage.Days[day], err = s.store.Recipients(ctx, tenant, day, most)
	}
	if err != nil {
		return booking.CapUsage{}, fmt.Errorf("count cap usage: %w", err)
	}
	return usage, nil
}

package schedule

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// CapUsage returns what a tenant may have at a time, and how much of that is used as Postgres counts it now: its pending pushes, and
// its recipients of one day. Counting ends at most.
func (s *Service) CapUsage(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, day booking.Day, most int) (booking.CapUsage, error) {
	usage := booking.CapUsage{Caps: own.Over(s.cfg.Caps), Days: map[booking.Day]int{}}
	var err error
	if usage.Pending, err = s.store.Pending(ctx, tenant, most); err == nil {
		usage.Days[day], err = s.store.Recipients(ctx, tenant, day, most)
	}
	if err != nil {
		return booking.CapUsage{}, fmt.Errorf("count what is used of caps: %w", err)
	}
	return usage, nil
}

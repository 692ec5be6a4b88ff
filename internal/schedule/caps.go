package schedule

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// book has an order booked under the tenant's caps. Where a conflict would move
// pushes to days that were not counted, it comes again with those counted.
func (s *Service) book(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, o store.Order) ([]store.Decision, error) {
	caps, days := own.Over(s.cfg.Caps), landings(o.Drafts)
	for {
		decisions, err := s.bookReserved(ctx, tenant, caps, o, days)
		again := false
		for _, v := range decisions {
			if v.Outcome == store.Uncounted {
				again, days[v.Capped.Day] = true, len(o.Drafts)
			}
		}
		if !again {
			return decisions, err
		}
	}
}

// bookReserved is book with slots of these days only.
func (s *Service) bookReserved(ctx context.Context, tenant uuid.UUID, caps push.Caps, o store.Order, days map[store.Day]int) ([]store.Decision, error) {
	reserved, err := s.caps.reserve(ctx, tenant, caps, len(o.Drafts), days)
	if err != nil {
		return nil, err
	}
	if reserved != nil {
		o.CapUsage = reserved.CapUsage
	}
	decisions, err := s.store.Book(ctx, o)
	switch nothing := o.DryRun || o.Atomic && slices.ContainsFunc(decisions, notBooked); {
	case err != nil:
		reserved.doubt()
	case nothing || slices.ContainsFunc(decisions, spoils):
		reserved.release()
	default:
		reserved.settle(decisions)
	}
	return decisions, err
}

// landings says how many pushes may come to lie on each day that drafts name:
// one that a conflict moves may land on any.
func landings(drafts []store.Draft) map[store.Day]int {
	days, movable := map[store.Day]int{}, 0
	for _, d := range drafts {
		if day := store.DayOf(d.Push.SendAt); d.Latest.IsZero() {
			days[day]++
		} else {
			movable++
			days[day] += 0
		}
	}
	for day := range days {
		days[day] += movable
	}
	return days
}

func notBooked(v store.Decision) bool {
	return v.Outcome != store.Booked && v.Outcome != store.Replayed
}

// spoils reports whether because of a decision nothing of an order was booked.
func spoils(v store.Decision) bool {
	return v.Outcome == store.KeyReused || v.Outcome == store.Uncounted
}

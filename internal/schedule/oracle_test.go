package schedule_test

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// oracle is a recipient's calendar, decided by brute force: it slides every window over every second.
type oracle map[uuid.UUID]time.Time

// full returns the bookings in the windows around t that have no place left, and the number of bookings in the fullest.
func (o oracle) full(r quota.Rule, t time.Time) (ids []uuid.UUID, fullest int) {
	for from := t.Add(time.Second - r.Window); !from.After(t); from = from.Add(time.Second) {
		var in []uuid.UUID
		for id, at := range o {
			if !at.Before(from) && at.Before(from.Add(r.Window)) {
				in = append(in, id)
			}
		}
		if fullest = max(fullest, len(in)); len(in) >= r.Limit {
			ids = append(ids, in...)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(ids), fullest
}

func (o oracle) free(p quota.Policy, t time.Time) bool {
	return !slices.ContainsFunc(p, func(r quota.Rule) bool { _, n := o.full(r, t); return n >= r.Limit })
}

// next and previous try one second after the other.
func (o oracle) next(p quota.Policy, t time.Time) time.Time {
	for !o.free(p, t) {
		t = t.Add(time.Second)
	}
	return t
}

func (o oracle) previous(p quota.Policy, t, now time.Time) time.Time {
	for ; t.After(now); t = t.Add(-time.Second) {
		if o.free(p, t) {
			return t
		}
	}
	return time.Time{}
}

package quota_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// The oracle knows nothing of runs and intervals. It slides a window over every grain of time and counts. All times and
// windows that the generators make are multiples of a grain, so that no window is missed.
const grain = time.Second / 2

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// windows calls do with the beginning of every window of this length that contains t.
func windows(t time.Time, length time.Duration, do func(from time.Time)) {
	for from := t.Add(grain - length); !from.After(t); from = from.Add(grain) {
		do(from)
	}
}

// inside returns the bookings in [from, from+length).
func inside(bookings []quota.Booking, from time.Time, length time.Duration) []quota.Booking {
	var in []quota.Booking
	for _, b := range bookings {
		if !b.At.Before(from) && b.At.Before(from.Add(length)) {
			in = append(in, b)
		}
	}
	return in
}

// oracleUsed counts the bookings in the fullest window around t.
func oracleUsed(r quota.Rule, bookings []quota.Booking, t time.Time) int {
	most := 0
	windows(t, r.Window, func(from time.Time) { most = max(most, len(inside(bookings, from, r.Window))) })
	return most
}

// oracleBroken reports whether one more booking at t overfills a window.
func oracleBroken(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
	return oracleUsed(r, bookings, t)+1 > r.Limit
}

// oracleConflicts returns what lies in the windows that t would overfill.
func oracleConflicts(r quota.Rule, bookings []quota.Booking, t time.Time) []uuid.UUID {
	var ids []uuid.UUID
	windows(t, r.Window, func(from time.Time) {
		if in := inside(bookings, from, r.Window); r.Limit > 0 && len(in) >= r.Limit {
			for _, b := range in {
				if !slices.Contains(ids, b.ID) {
					ids = append(ids, b.ID)
				}
			}
		}
	})
	return ids
}

func oracleFree(p quota.Policy, bookings []quota.Booking, t time.Time) bool {
	return !slices.ContainsFunc(p, func(r quota.Rule) bool { return oracleBroken(r, bookings, t) })
}

// calendar is a recipient's bookings under a policy.
type calendar struct {
	policy   quota.Policy
	bookings []quota.Booking // by time
}

func (c calendar) String() string {
	s := ""
	for _, r := range c.policy {
		s += fmt.Sprintf("%d per %s, ", r.Limit, r.Window)
	}
	s += "booked"
	for _, b := range c.bookings {
		s += fmt.Sprintf(" %+v", b.At.Sub(noon))
	}
	return s
}

const span = 60 * time.Second // the calendars' length

// lengths draws multiples of the unit, and as often of five seconds: it is where times are exactly a window apart that
// mistakes show.
func lengths(least, most, unit time.Duration) *rapid.Generator[time.Duration] {
	multiples := func(unit time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(int((least+unit-1)/unit), int(most/unit)), func(n int) time.Duration { return time.Duration(n) * unit })
	}
	return rapid.OneOf(multiples(unit), multiples(5*time.Second))
}

func moments(unit time.Duration) *rapid.Generator[time.Time] {
	return rapid.Map(lengths(0, span, unit), func(d time.Duration) time.Time { return noon.Add(d) })
}

// policies draws one to three rules, some with a 1-per-window rule and, if asked for, some that allow nothing.
func policies(leastLimit int) *rapid.Generator[quota.Policy] {
	rule := rapid.Custom(func(t *rapid.T) quota.Rule {
		return quota.Rule{
			Limit:  rapid.IntRange(leastLimit, 4).Draw(t, "limit"),
			Window: lengths(grain, 25*time.Second, grain).Draw(t, "window"),
		}
	})
	return rapid.Custom(func(t *rapid.T) quota.Policy {
		p := quota.Policy(rapid.SliceOfN(rule, 1, 3).Draw(t, "rules"))
		for i := range p {
			p[i].Name = fmt.Sprintf("rule-%d", i)
		}
		return p
	})
}

// calendars draws a policy and bookings, of which half keep to the policy and half are whatever an earlier policy may
// have allowed.
func calendars(unit time.Duration, leastLimit int) *rapid.Generator[calendar] {
	return rapid.Custom(func(t *rapid.T) calendar {
		c := calendar{policy: policies(leastLimit).Draw(t, "policy")}
		legal := rapid.Bool().Draw(t, "legal")
		for i, at := range rapid.SliceOfN(moments(unit), 0, 10).Draw(t, "times") {
			if !legal || oracleFree(c.policy, c.bookings, at) {
				c.bookings = insert(c.bookings, booking(i, at))
			}
		}
		return c
	})
}

func booking(i int, at time.Time) quota.Booking {
	return quota.Booking{ID: uuid.UUID{15: byte(i + 1)}, At: at}
}

// insert puts b into bookings sorted by time, behind its equals.
func insert(bookings []quota.Booking, b quota.Booking) []quota.Booking {
	return quota.NewTimeline(bookings).Insert(b).Bookings()
}

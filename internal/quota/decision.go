package quota

import (
	"slices"
	"time"
)

// Decision says whether a time can be booked, and if not, why and when else.
type Decision struct {
	Violations []Violation // empty: allowed
	Next       time.Time   // the first free time from the asked one on; zero: none
	Previous   time.Time   // the last free time before it that still lies ahead; zero: none
}

// Allowed reports whether every rule has a place left.
func (d Decision) Allowed() bool { return len(d.Violations) == 0 }

// Violation is a rule without a place left, and the bookings that fill it.
// A rule of limit 0 has no conflicts.
type Violation struct {
	Rule      Rule
	Conflicts []Booking
}

// Violations returns the rules that one more booking at t would break, in the
// policy's order; none means that t is free. Bookings further than [Reach]
// from t make no difference.
func (p Policy) Violations(bookings []Booking, t time.Time) []Violation {
	var violations []Violation
	for _, r := range p {
		var conflicts []Booking
		broken := false
		for _, i := range r.appendBlocked(nil, bookings) {
			if i.Covers(t) {
				broken = true
				conflicts = append(conflicts, i.Bookings...)
			}
		}
		if broken {
			violations = append(violations, Violation{Rule: r, Conflicts: distinct(conflicts)})
		}
	}
	return violations
}

// distinct sorts bookings by time and drops repeated ones.
func distinct(bookings []Booking) []Booking {
	slices.SortFunc(bookings, func(a, b Booking) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return slices.Compare(a.ID[:], b.ID[:])
	})
	return slices.CompactFunc(bookings, func(a, b Booking) bool { return a.ID == b.ID })
}

// Next returns the first free time that is not before t and a multiple of
// step (0: any time). It is false if there is none. The answer holds if the
// bookings are complete from t−[Reach] to the answer+[Reach].
func (p Policy) Next(bookings []Booking, t time.Time, step time.Duration) (time.Time, bool) {
	t = ceil(t, step)
	// Sorted by beginning, an interval that t has passed can not cover it again.
	for _, i := range p.Blocked(bookings) {
		if !i.Covers(t) {
			continue
		}
		if i.Until.IsZero() {
			return time.Time{}, false
		}
		t = ceil(i.Until, step)
	}
	return t, true
}

// Previous returns the last free time that is not after t and a multiple of
// step (0: any time). It is false if there is none. The answer holds if the
// bookings are complete from the answer−[Reach] to t+[Reach].
func (p Policy) Previous(bookings []Booking, t time.Time, step time.Duration) (time.Time, bool) {
	blocked := p.Blocked(bookings)
	slices.SortStableFunc(blocked, func(a, b Interval) int { return b.Until.Compare(a.Until) })
	t = t.Truncate(step)
	for _, i := range blocked {
		if !i.Covers(t) {
			continue
		}
		if i.From.IsZero() {
			return time.Time{}, false
		}
		t = i.From.Truncate(step)
	}
	return t, true
}

// ceil rounds t up to a multiple of step.
func ceil(t time.Time, step time.Duration) time.Time {
	if down := t.Truncate(step); down.Before(t) {
		return down.Add(step)
	}
	return t
}

// Usage is how full a rule is around a time.
type Usage struct {
	Rule            Rule
	Used, Remaining int
}

// Usage counts, for every rule, the bookings in the fullest window that
// contains t.
func (p Policy) Usage(bookings []Booking, t time.Time) []Usage {
	usage := make([]Usage, 0, len(p))
	for _, r := range p {
		used := r.fullest(bookings, t)
		usage = append(usage, Usage{Rule: r, Used: used, Remaining: max(0, r.Limit-used)})
	}
	return usage
}

// fullest tries the windows that begin at a booking in (t−W, t], and the one
// that begins at t: any other window that contains t can be moved later, up to
// one of these, without losing a booking.
func (r Rule) fullest(bookings []Booking, t time.Time) int {
	most := within(bookings, t, r.Window)
	for _, b := range bookings {
		if b.At.After(t.Add(-r.Window)) && !b.At.After(t) {
			most = max(most, within(bookings, b.At, r.Window))
		}
	}
	return most
}

// within counts the bookings in [from, from+window).
func within(bookings []Booking, from time.Time, window time.Duration) int {
	n := 0
	for _, b := range bookings {
		if !b.At.Before(from) && b.At.Before(from.Add(window)) {
			n++
		}
	}
	return n
}

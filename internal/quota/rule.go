package quota

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Rule allows at most Limit bookings in any half-open window of length Window.
// A Limit of 0 blocks every time.
type Rule struct {
	Name   string
	Limit  int
	Window time.Duration
}

// Policy is a set of rules that must all hold. The empty policy limits
// nothing.
type Policy []Rule

// Booking is a place held in a recipient's quota. Functions of this package
// want bookings sorted by time; see [Insert].
type Booking struct {
	ID uuid.UUID
	At time.Time
}

// Insert puts b into bookings sorted by time, behind its equals.
func Insert(bookings []Booking, b Booking) []Booking {
	i, _ := slices.BinarySearchFunc(bookings, b, func(x, b Booking) int {
		if x.At.After(b.At) {
			return 1
		}
		return -1
	})
	return slices.Insert(bookings, i, b)
}

// Reach is how far from a time a booking can matter to it: the longest window.
func (p Policy) Reach() time.Duration {
	var reach time.Duration
	for _, r := range p {
		reach = max(reach, r.Window)
	}
	return reach
}

// Interval is a stretch of time in which Rule has no place left because of
// Bookings. It is open at both ends; a zero From or Until means without end.
type Interval struct {
	From, Until time.Time
	Rule        Rule
	Bookings    []Booking
}

// Covers reports whether t lies inside the interval.
func (i Interval) Covers(t time.Time) bool {
	return (i.From.IsZero() || t.After(i.From)) && (i.Until.IsZero() || t.Before(i.Until))
}

// Blocked returns the intervals in which nothing can be booked beside the
// given bookings, sorted by their beginning. They may overlap.
func (p Policy) Blocked(bookings []Booking) []Interval {
	var blocked []Interval
	for _, r := range p {
		blocked = r.appendBlocked(blocked, bookings)
	}
	slices.SortStableFunc(blocked, func(a, b Interval) int { return a.From.Compare(b.From) })
	return blocked
}

// appendBlocked adds the rule's own intervals: one for every run of Limit
// consecutive bookings that is shorter than the window.
func (r Rule) appendBlocked(blocked []Interval, bookings []Booking) []Interval {
	if r.Limit == 0 {
		return append(blocked, Interval{Rule: r})
	}
	for i := r.Limit; i <= len(bookings); i++ {
		run := bookings[i-r.Limit : i]
		a, b := run[0].At, run[r.Limit-1].At
		if b.Sub(a) < r.Window {
			blocked = append(blocked, Interval{From: b.Add(-r.Window), Until: a.Add(r.Window), Rule: r, Bookings: run})
		}
	}
	return blocked
}

package quota

import (
	"slices"
	"time"
)

// Interval is a stretch of time in which Rule has no place left because of Bookings. It is open at both ends; a zero
// From or Until means without end.
type Interval struct {
	From, Until time.Time
	Rule        Rule
	Bookings    []Booking
}

// Covers reports whether t lies inside the interval.
func (i Interval) Covers(t time.Time) bool {
	return (i.From.IsZero() || t.After(i.From)) && (i.Until.IsZero() || t.Before(i.Until))
}

// Blocked returns the intervals in which nothing can be booked beside the bookings of a timeline, sorted by their
// beginning. They may overlap.
func (p Policy) Blocked(line Timeline) []Interval {
	var blocked []Interval
	bookings := line.Bookings()
	for _, r := range p {
		if r.Limit == 0 {
			blocked = append(blocked, Interval{Rule: r})
		}
		for run := range line.runs(r) {
			if line.full(r, run) {
				full := bookings[run : run+r.Limit]
				blocked = append(blocked, Interval{From: full[r.Limit-1].At.Add(-r.Window), Until: full[0].At.Add(r.Window), Rule: r, Bookings: full})
			}
		}
	}
	slices.SortStableFunc(blocked, func(a, b Interval) int { return a.From.Compare(b.From) })
	return blocked
}

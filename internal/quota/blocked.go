package quota

import (
	"slices"
	"time"
)

// Interval is a stretch of time in which Rule has no place left because of Bookings. A zero From or Until means no
// bound. Until is always excluded. From is included only if FromClosed: a period also blocks its first instant, while a
// rolling window blocks an interval that is open at both ends.
type Interval struct {
	From, Until time.Time
	FromClosed  bool
	Rule        Rule
	Bookings    []Booking
}

// Covers reports whether t lies inside the interval.
func (i Interval) Covers(t time.Time) bool {
	return (i.From.IsZero() || t.After(i.From) || i.FromClosed && t.Equal(i.From)) && (i.Until.IsZero() || t.Before(i.Until))
}

// touches reports whether the interval and [from, until) overlap.
func (i Interval) touches(from, until time.Time) bool {
	return (i.From.IsZero() || i.From.Before(until)) && (i.Until.IsZero() || i.Until.After(from))
}

// Blocked returns the intervals that overlap [from, until) and in which nothing more can be booked, given the bookings
// of a timeline. They are sorted by their beginning, and may overlap.
func (p Policy) Blocked(line Timeline, from, until time.Time) []Interval {
	var blocked []Interval
	all := line.Bookings()
	for i := range p {
		r := &p[i]
		counted, bookings := line.counted(r.Counts), all
		if r.Counts != nil {
			bookings = counted.Bookings()
		}
		switch {
		case r.always():
			blocked = append(blocked, Interval{Rule: *r})
		case r.Periods == nil:
			blocked = append(blocked, r.blockedByRuns(counted, bookings)...)
		default:
			blocked = append(blocked, r.blockedPeriods(counted, bookings, from, until)...)
		}
	}
	blocked = slices.DeleteFunc(blocked, func(i Interval) bool { return !i.touches(from, until) })
	slices.SortStableFunc(blocked, func(a, b Interval) int { return a.From.Compare(b.From) })
	return blocked
}

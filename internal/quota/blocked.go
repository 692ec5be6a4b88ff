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

// Blocked returns the intervals that overlap [from, until) and in which nothing more can be booked, given the bookings
// of a timeline. They are sorted by their beginning, and may overlap.
func (p Policy) Blocked(line Timeline, from, until time.Time) []Interval {
	var all []Interval
	line.beginAt(from)
	first, end := line.offset(from), line.offset(until)
	for i := range p {
		r := &p[i]
		if r.always() {
			all = append(all, Interval{Rule: *r})
			continue
		}
		var bookings []Booking
		var blocks blocks
		blocks.init(r, &line, first, end)
		for b, ok := blocks.next(first, end); ok; b, ok = blocks.next(first, end) {
			blocked := Interval{From: line.origin.Add(b.from), Until: line.origin.Add(b.until), FromClosed: true, Rule: *r}
			if r.Periods == nil {
				blocked.From, blocked.FromClosed = blocked.From.Add(-1), false
			}
			if b.low < b.high {
				if bookings == nil {
					bookings = blocks.bookings(&line, 0, len(blocks.at))
				}
				blocked.Bookings = bookings[b.low:b.high]
			}
			all = append(all, blocked)
		}
	}
	slices.SortStableFunc(all, func(a, b Interval) int { return a.From.Compare(b.From) })
	return all
}

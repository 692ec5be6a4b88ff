package quota

import "time"

// A period of a rule is full if it has as many bookings as the rule has places. A full period is blocked from its first
// instant up to its end, exclusive. Quiet hours have no places, and are always full.
//
// All bookings in this file are the ones that the rule counts.

// fullAround returns the period that a time lies in, and whether it is full.
func (s *sweep) fullAround(g *grid, at time.Duration) (from, until time.Duration, full bool) {
	begin, end, inside := s.rule.Periods.Around(g.time(at))
	from, until = g.offset(begin), g.offset(end)
	return from, until, inside && before(s.at, until)-before(s.at, from) >= s.rule.places()
}

// pastPeriods returns the first time of the grid at or after at outside all full periods, or a time after end.
func (s *sweep) pastPeriods(g *grid, at, end time.Duration) time.Duration {
	for at <= end {
		_, until, full := s.fullAround(g, at)
		if !full {
			break
		}
		at = g.up(until)
	}
	return at
}

// beforePeriods returns the last time of the grid at or before at outside all full periods, or a time before end.
func (s *sweep) beforePeriods(g *grid, at, end time.Duration) time.Duration {
	for at >= end {
		from, _, full := s.fullAround(g, at)
		if !full {
			break
		}
		at = g.down(from - 1)
	}
	return at
}

// blockedPeriods returns the full periods with bookings; for quiet hours, the ones that overlap (from, until).
func (r *Rule) blockedPeriods(line Timeline, bookings []Booking, from, until time.Time) []Interval {
	var blocked []Interval
	if r.Quiet {
		for t := from; t.Before(until); {
			begin, end, inside := r.Periods.Around(t)
			if inside {
				blocked = append(blocked, Interval{From: begin, Until: end, FromClosed: true, Rule: *r})
			}
			t = end
		}
		return blocked
	}
	for i := 0; i < len(bookings); {
		begin, end, _ := r.Periods.Around(bookings[i].At)
		low, high := i, max(i+1, before(line.at, line.offset(end)))
		if high-low >= r.places() {
			blocked = append(blocked, Interval{From: begin, Until: end, FromClosed: true, Rule: *r, Bookings: bookings[low:high]})
		}
		i = high
	}
	return blocked
}

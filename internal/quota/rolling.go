package quota

import "time"

// A run of a rolling rule consists of as many consecutive bookings as the rule has places. It is identified by the
// index of the first. A run that is shorter than the window is full: it blocks the open interval between its bounds.
// Both bounds grow from run to run, so a sweep over time passes each run once.
//
// All bookings in this file are the ones that the rule counts.

// runs are the runs of a rule.
type runs struct {
	at     []time.Duration // the times of the bookings
	places int
	window time.Duration
}

// runs returns the rule's runs over the given times.
func (r *Rule) runs(at []time.Duration) runs { return runs{at, r.places(), r.Window} }

// len returns the number of runs. A rule without places has none: it always blocks.
func (s *runs) len() int {
	if s.places == 0 {
		return 0
	}
	return max(0, len(s.at)-s.places+1)
}

// full reports whether a run leaves no place.
func (s *runs) full(run int) bool { return s.at[run+s.places-1]-s.at[run] < s.window }

// bounds returns the interval that a run blocks if it is full.
func (s *runs) bounds(run int) (from, until time.Duration) {
	return s.at[run+s.places-1] - s.window, s.at[run] + s.window
}

// firstFull returns the first run that is full, or -1.
func (s *runs) firstFull() int {
	for run := range s.len() {
		if s.full(run) {
			return run
		}
	}
	return -1
}

// lastFull returns the last run that is full, or -1.
func (s *runs) lastFull() int {
	run := s.len() - 1
	for run >= 0 && !s.full(run) {
		run--
	}
	return run
}

// fullest returns the number of bookings in the fullest window that contains now. at holds the bookings near it. It
// tries the windows that begin at a booking in (now−W, now], and the one that begins now. Any other window that
// contains now can be moved later, up to one of these, without losing a booking.
func (r *Rule) fullest(at []time.Duration, now time.Duration) int {
	if len(at) == 0 || at[len(at)-1]-at[0] < r.Window {
		return len(at) // one window has them all
	}
	end := 0
	most := len(at) - before(at, now)
	for first := 0; at[first] <= now; first++ {
		for end < len(at) && at[end] < at[first]+r.Window {
			end++
		}
		most = max(most, end-first)
	}
	return most
}

// pastRuns returns the first time of the grid at or after at that no run blocks.
func (s *sweep) pastRuns(g *grid, at time.Duration) time.Duration {
	all, passed := s.rule.runs(s.at), s.passed
	for n := all.len(); passed < n; passed++ {
		from, until := all.bounds(passed)
		if from >= at {
			break
		}
		if until > at && all.full(passed) {
			at = g.up(until)
		}
	}
	s.passed = passed
	return at
}

// beforeRuns returns the last time of the grid at or before at that no run blocks.
func (s *sweep) beforeRuns(g *grid, at time.Duration) time.Duration {
	all, passed := s.rule.runs(s.at), s.passed
	for n := all.len(); passed < n; passed++ {
		from, until := all.bounds(n - 1 - passed)
		if until <= at {
			break
		}
		if from < at && all.full(n-1-passed) {
			at = g.down(from)
		}
	}
	s.passed = passed
	return at
}

// blockedByRuns returns the intervals that runs block.
func (r *Rule) blockedByRuns(line Timeline, bookings []Booking) []Interval {
	var blocked []Interval
	all := r.runs(line.at)
	for run := range all.len() {
		if all.full(run) {
			full := bookings[run : run+all.places]
			blocked = append(blocked, Interval{From: full[len(full)-1].At.Add(-r.Window), Until: full[0].At.Add(r.Window), Rule: *r, Bookings: full})
		}
	}
	return blocked
}

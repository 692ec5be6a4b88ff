package quota

import (
	"slices"
	"time"
)

// Next returns the first free time at or after t that is a multiple of step (0: any time). The second result is false
// if there is none. The timeline must be complete from t−[Reach] to the result+[Reach].
func (p Policy) Next(line Timeline, t time.Time, step time.Duration) (time.Time, bool) {
	if p.never() {
		return time.Time{}, false
	}
	line = line.between(t.Add(-p.Reach()), endOfTime)
	grid := line.grid(t, step)
	at := grid.up(grid.offset(t))
	end := at
	if n := line.Len(); n > 0 {
		end = max(end, line.at[n-1]+p.Reach())
	}
	end += barren
	var room [few]sweep
	sweeps := p.sweeps(room[:0], &grid.Timeline)
	for moved := true; moved; {
		moved = false
		for i := range sweeps {
			if free := sweeps[i].up(&grid, at, end); free > at {
				at, moved = free, true
			}
		}
		if at > end {
			return time.Time{}, false
		}
	}
	return grid.time(at), true
}

// barren bounds the search through quiet hours: if nothing was free for this long, nothing ever is. It is longer than a
// year, because a daylight saving change can free an hour once a year.
const barren = 400 * 24 * time.Hour

// Previous returns the last free time at or before t that is a multiple of step (0: any time). The second result is
// false if there is none. The timeline must be complete from the result−[Reach] to t+[Reach].
func (p Policy) Previous(line Timeline, t time.Time, step time.Duration) (time.Time, bool) {
	if p.never() {
		return time.Time{}, false
	}
	t = t.Truncate(step)
	line = line.between(beginningOfTime, t.Add(p.Reach()))
	if line.between(t.Add(-p.Reach()), endOfTime).Len() == 0 && p.Allows(Timeline{}, t) {
		return t, true // all bookings are long ago
	}
	grid := line.grid(t, step)
	at := grid.offset(t)
	end := at
	if line.Len() > 0 {
		end = min(end, line.at[0]-p.Reach())
	}
	end -= barren
	var room [few]sweep
	sweeps := p.sweeps(room[:0], &grid.Timeline)
	for moved := true; moved; {
		moved = false
		for i := range sweeps {
			if free := sweeps[i].down(&grid, at, end); free < at {
				at, moved = free, true
			}
		}
		if at < end {
			return time.Time{}, false
		}
	}
	return grid.time(at), true
}

// sweep walks over the blocked intervals of a rule in one direction of time, from one free time to the next.
type sweep struct {
	rule   *Rule
	at     []time.Duration // the bookings that the rule counts
	passed int             // the number of runs that the sweep has passed: they no longer block anything
}

// few is the usual maximum number of rules in a policy. Up to few sweeps need no allocation.
const few = 6

// sweeps appends the sweeps of all rules to none.
func (p Policy) sweeps(none []sweep, line *Timeline) []sweep {
	for i := range p {
		none = append(none, sweep{rule: &p[i], at: line.times(0, line.Len(), p[i].Counts)})
	}
	return none
}

// up returns the first time of the grid at or after at that the rule leaves free, or a time after end.
func (s *sweep) up(g *grid, at, end time.Duration) time.Duration {
	if s.rule.Periods != nil {
		return s.pastPeriods(g, at, end)
	}
	return s.pastRuns(g, at)
}

// down returns the last time of the grid at or before at that the rule leaves free, or a time before end.
func (s *sweep) down(g *grid, at, end time.Duration) time.Duration {
	if s.rule.Periods != nil {
		return s.beforePeriods(g, at, end)
	}
	return s.beforeRuns(g, at)
}

// never reports whether a rule blocks all time.
func (p Policy) never() bool {
	return slices.ContainsFunc(p, func(r Rule) bool { return r.always() })
}

// always reports whether the rule blocks all time.
func (r *Rule) always() bool { return r.places() == 0 && !r.Quiet }

// Defers reports whether a push at t moves by itself to the next free time: t lies in quiet hours that defer, and in
// none that reject.
func (p Policy) Defers(t time.Time) bool {
	defers := false
	for i := range p {
		if r := &p[i]; r.Quiet {
			if _, _, inside := r.Periods.Around(t); inside && !r.Defers {
				return false
			} else if inside {
				defers = true
			}
		}
	}
	return defers
}

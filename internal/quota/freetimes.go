package quota

import (
	"slices"
	"time"
)

// Next returns the first free time that is not before t and a multiple of step (0: any time). It is false if there is
// none. The answer holds if the timeline is complete from t−[Reach] to the answer+[Reach].
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

// barren is how long nothing is free but for quiet hours, until it is taken that nothing ever is: longer than a year, as
// clocks that are moved in summer can uncover an hour.
const barren = 400 * 24 * time.Hour

// Previous returns the last free time that is not after t and a multiple of step (0: any time). It is false if there
// is none. The answer holds if the timeline is complete from the answer−[Reach] to t+[Reach].
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

// sweep passes what a rule blocks in one direction of time, from one time to the next one that the rule leaves free.
type sweep struct {
	rule   *Rule
	at     []time.Duration // of the bookings that the rule counts
	passed int             // how many runs cannot block the time that the sweep has come to, nor any behind it
}

// few is how many rules a policy has mostly: their sweeps need no memory of their own.
const few = 6

// sweeps adds those of all rules to none.
func (p Policy) sweeps(none []sweep, line *Timeline) []sweep {
	for i := range p {
		none = append(none, sweep{rule: &p[i], at: line.times(0, line.Len(), p[i].Counts)})
	}
	return none
}

// up returns the first time of the grid from at on that the rule leaves free, or one behind the end.
func (s *sweep) up(g *grid, at, end time.Duration) time.Duration {
	if s.rule.Periods != nil {
		return s.pastPeriods(g, at, end)
	}
	return s.pastRuns(g, at)
}

// down returns the last time of the grid up to at that the rule leaves free, or one before the end.
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

// Defers reports whether a push at t moves by itself to the next free time: t lies in quiet hours that say so, and in
// none that do not.
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

package quota

import (
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
	var room [few]blocks
	rules := p.blocks(room[:0], &grid.Timeline, at, end+1)
	for moved := true; moved; {
		moved = false
		for i := range rules {
			if free := rules[i].pass(at, end); free > at {
				at, moved = grid.up(free), true
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
	var room [few]blocks
	rules := p.blocks(room[:0], &grid.Timeline, end, at+1)
	for moved := true; moved; {
		moved = false
		for i := range rules {
			if free := rules[i].passBack(at, end); free < at {
				at, moved = grid.down(free), true
			}
		}
		if at < end {
			return time.Time{}, false
		}
	}
	return grid.time(at), true
}

// few is the usual maximum number of rules in a policy. The blocks of up to few rules need no allocation.
const few = 6

// blocks appends the blocks of all rules between two times to none.
func (p Policy) blocks(none []blocks, line *Timeline, from, until time.Duration) []blocks {
	for i := range p {
		none = append(none, blocks{})
		none[i].init(&p[i], line, from, until)
	}
	return none
}

// never reports whether a rule blocks all time.
func (p Policy) never() bool {
	for i := range p {
		if p[i].always() {
			return true
		}
	}
	return false
}

// grid is the set of multiples of a step, as offsets of a timeline.
type grid struct {
	Timeline
	step  time.Duration // 0: any time
	phase time.Duration // distance from the last multiple to the origin
}

// grid returns the multiples of a step. If the timeline is empty, its origin becomes t.
func (l Timeline) grid(t time.Time, step time.Duration) grid {
	l.beginAt(t)
	return grid{l, step, l.origin.Sub(l.origin.Truncate(step))}
}

// down rounds an offset down to a multiple of the step.
func (g grid) down(at time.Duration) time.Duration {
	if g.step <= 0 {
		return at
	}
	over := (at + g.phase) % g.step
	if over < 0 {
		over += g.step
	}
	return at - over
}

// up rounds an offset up.
func (g grid) up(at time.Duration) time.Duration {
	if down := g.down(at); down < at {
		return down + g.step
	}
	return at
}

// time returns the time at an offset.
func (g grid) time(at time.Duration) time.Time { return g.origin.Add(at) }

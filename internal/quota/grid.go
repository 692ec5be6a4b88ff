package quota

import "time"

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

package quota

import (
	"cmp"
	"slices"
	"time"
)

// Decision says whether a time can be booked, and if not, why and when else.
type Decision struct {
	Violations []Violation // empty: allowed
	Next       time.Time   // the first free time from the asked one on; zero: none
	Previous   time.Time   // the last free time before it that still lies ahead; zero: none
}

// Allowed reports whether every rule has a place left.
func (d Decision) Allowed() bool { return len(d.Violations) == 0 }

// Violation is a rule without a place left, and the bookings that fill it, by time. A rule of limit 0 has no
// conflicts.
type Violation struct {
	Rule      Rule
	Conflicts []Booking // of more than MaxConflicts, those nearest to the time
	Omitted   int       // how many more there are
}

// MaxConflicts is how many bookings a [Violation] names.
const MaxConflicts = 100

// Allows reports whether one more booking at t breaks no rule. Bookings further than [Reach] from t make no
// difference.
func (p Policy) Allows(line Timeline, t time.Time) bool {
	return !slices.ContainsFunc(p, func(r Rule) bool { return r.breaks(line.near(r, t)) })
}

// breaks reports whether one more booking breaks the rule, beside those that share a window with it.
func (r Rule) breaks(near Timeline) bool { return r.Limit == 0 || near.firstFull(r) >= 0 }

// Violations returns the rules that one more booking at t would break, in the policy's order; none means that t is
// free. Bookings further than [Reach] from t make no difference.
func (p Policy) Violations(line Timeline, t time.Time) []Violation {
	var violations []Violation
	for _, r := range p {
		if near := line.near(r, t); r.breaks(near) {
			v := Violation{Rule: r}
			v.Conflicts, v.Omitted = r.conflicts(near, t)
			violations = append(violations, v)
		}
	}
	return violations
}

// conflicts returns the bookings of all runs that block t, of those near it: the nearest ones, and how many others
// there are. Nothing lies between them that is not one of them: a run on one side of t still blocks it when it is
// moved towards t.
func (r Rule) conflicts(near Timeline, t time.Time) (nearest []Booking, omitted int) {
	if r.Limit == 0 {
		return nil, 0
	}
	all := near.part(near.firstFull(r), near.lastFull(r)+r.Limit)
	low, high := all.nearest(t, MaxConflicts)
	nearest = all.part(low, high).Bookings()
	slices.SortFunc(nearest, func(a, b Booking) int {
		return cmp.Or(a.At.Compare(b.At), slices.Compare(a.ID[:], b.ID[:]))
	})
	return nearest, all.Len() - len(nearest)
}

// Keep leaves at most so many conflicts, those nearest to the time t.
func (v *Violation) Keep(most int, t time.Time) {
	low, high := NewTimeline(v.Conflicts).nearest(t, most)
	v.Omitted += len(v.Conflicts) - (high - low)
	v.Conflicts = v.Conflicts[low:high]
}

// Next returns the first free time that is not before t and a multiple of step (0: any time). It is false if there is
// none. The answer holds if the timeline is complete from t−[Reach] to the answer+[Reach].
func (p Policy) Next(line Timeline, t time.Time, step time.Duration) (time.Time, bool) {
	if p.never() {
		return time.Time{}, false
	}
	line = line.between(t.Add(-p.Reach()), endOfTime)
	grid := line.grid(t, step)
	at := grid.up(grid.offset(t))
	runs := make([]int, len(p)) // of each rule, the first that can block this time or a later one
	for moved := true; moved; {
		moved = false
		for i, r := range p {
			for ; runs[i] < line.runs(r); runs[i]++ {
				from, until := line.bounds(r, runs[i])
				if from >= at {
					break
				}
				if until > at && line.full(r, runs[i]) {
					at, moved = grid.up(until), true
				}
			}
		}
	}
	return grid.time(at), true
}

// never reports whether a rule blocks all time.
func (p Policy) never() bool {
	return slices.ContainsFunc(p, func(r Rule) bool { return r.Limit == 0 })
}

// Previous returns the last free time that is not after t and a multiple of step (0: any time). It is false if there
// is none. The answer holds if the timeline is complete from the answer−[Reach] to t+[Reach].
func (p Policy) Previous(line Timeline, t time.Time, step time.Duration) (time.Time, bool) {
	if p.never() {
		return time.Time{}, false
	}
	t = t.Truncate(step)
	line = line.between(beginningOfTime, t.Add(p.Reach()))
	if line.between(t.Add(-p.Reach()), endOfTime).Len() == 0 {
		return t, true // all bookings are long ago
	}
	grid := line.grid(t, step)
	at := grid.offset(t)
	passed := make([]int, len(p)) // of each rule, how many runs from the last can not block this time or an earlier one
	for moved := true; moved; {
		moved = false
		for i, r := range p {
			for ; passed[i] < line.runs(r); passed[i]++ {
				run := line.runs(r) - 1 - passed[i]
				from, until := line.bounds(r, run)
				if until <= at {
					break
				}
				if from < at && line.full(r, run) {
					at, moved = grid.down(from), true
				}
			}
		}
	}
	return grid.time(at), true
}

// Usage is how full a rule is around a time.
type Usage struct {
	Rule            Rule
	Used, Remaining int
}

// Usage counts, for every rule, the bookings in the fullest window that contains t.
func (p Policy) Usage(line Timeline, t time.Time) []Usage {
	usage := make([]Usage, 0, len(p))
	for _, r := range p {
		used := r.fullest(line.near(r, t), t)
		usage = append(usage, Usage{Rule: r, Used: used, Remaining: max(0, r.Limit-used)})
	}
	return usage
}

// fullest counts the bookings in the fullest window that contains t, of those near it. It tries the windows that
// begin at a booking in (t−W, t], and the one that begins at t: any other window that contains t can be moved later,
// up to one of these, without losing a booking.
func (r Rule) fullest(near Timeline, t time.Time) int {
	at := near.at
	if len(at) == 0 || at[len(at)-1]-at[0] < r.Window {
		return len(at) // one window has them all
	}
	now, end := near.offset(t), 0
	most := len(at) - near.before(t)
	for first := 0; at[first] <= now; first++ {
		for end < len(at) && at[end] < at[first]+r.Window {
			end++
		}
		most = max(most, end-first)
	}
	return most
}

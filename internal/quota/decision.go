package quota

import (
	"cmp"
	"slices"
	"time"
)

// Decision is the answer to a request for a time: allowed, or the reasons against it and the nearest free times.
type Decision struct {
	Violations []Violation // empty: allowed
	Next       time.Time   // the first free time from the requested one on; zero: none
	Previous   time.Time   // the last free time before it that is still in the future; zero: none
}

// Allowed reports whether every rule has a place left.
func (d Decision) Allowed() bool { return len(d.Violations) == 0 }

// Violation is a rule without a place left, and the bookings that fill it, by time. A rule of limit 0, and quiet hours,
// have no conflicts.
type Violation struct {
	Rule      Rule
	Conflicts []Booking // if there are more than MaxConflicts, the ones nearest to the time
	Omitted   int       // the number of further conflicts
}

// MaxConflicts is the maximum number of bookings in a [Violation].
const MaxConflicts = 100

// Allows reports whether one more booking at t breaks no rule. Only bookings within [Reach] of t matter.
func (p Policy) Allows(line Timeline, t time.Time) bool {
	for i := range p {
		if p[i].breaks(&line, t) {
			return false
		}
	}
	return true
}

// span returns the indexes of the bookings that share a window, or the period, with t. Every run that blocks t lies in
// this range, and every full run in this range blocks t. inside is false if t lies in no period.
func (r *Rule) span(line *Timeline, t time.Time) (low, high int, inside bool) {
	now := line.offset(t)
	if r.Periods == nil {
		low, high = line.around(now, r.Window)
		return low, high, true
	}
	from, until, inside := r.Periods.Around(t)
	if inside {
		low, high = line.within(line.offset(from), line.offset(until))
	}
	return low, high, inside
}

// breaks reports whether one more booking at t breaks the rule.
func (r *Rule) breaks(line *Timeline, t time.Time) bool {
	low, high, inside := r.span(line, t)
	if !inside || high-low < r.places() {
		return false
	}
	near := line.times(low, high, r.Counts)
	if r.Periods != nil {
		return len(near) >= r.places()
	}
	all := r.runs(near)
	return all.places == 0 || all.firstFull() >= 0
}

// Violations returns the rules that one more booking at t would break, in the policy's order; none if t is free. Each
// rule appears once, also if its reserved places are full too. Only bookings within [Reach] of t matter.
func (p Policy) Violations(line Timeline, t time.Time) []Violation {
	var violations []Violation
	for i := range p {
		r := &p[i]
		if n := len(violations); r.Reserved > 0 && n > 0 && violations[n-1].Rule.Name == r.Name {
			continue
		}
		if r.breaks(&line, t) {
			v := Violation{Rule: *r}
			v.Conflicts, v.Omitted = r.conflicts(line, t)
			violations = append(violations, v)
		}
	}
	return violations
}

// conflicts returns the bookings that fill the period of t, or all runs that block t: the nearest ones, and the number
// of the others. Every booking between them is a conflict too, because a run on one side of t still blocks t when it is
// moved towards t.
func (r *Rule) conflicts(line Timeline, t time.Time) (nearest []Booking, omitted int) {
	if r.places() == 0 {
		return nil, 0
	}
	low, high, _ := r.span(&line, t)
	all := line.part(low, high).counted(r.Counts)
	if r.Periods == nil {
		runs := r.runs(all.at)
		all = all.part(runs.firstFull(), runs.lastFull()+runs.places)
	}
	low, high = all.nearest(t, MaxConflicts)
	nearest = all.part(low, high).Bookings()
	slices.SortFunc(nearest, func(a, b Booking) int {
		return cmp.Or(a.At.Compare(b.At), slices.Compare(a.ID[:], b.ID[:]))
	})
	return nearest, all.Len() - len(nearest)
}

// Keep drops all but the n conflicts that are nearest to t.
func (v *Violation) Keep(n int, t time.Time) {
	low, high := NewTimeline(v.Conflicts).nearest(t, n)
	v.Omitted += len(v.Conflicts) - (high - low)
	v.Conflicts = v.Conflicts[low:high]
}

// Usage is the number of used and remaining places of a rule around a time. Remaining excludes places that are reserved
// for others.
type Usage struct {
	Rule            Rule
	Used, Remaining int
}

// Usage counts, for every rule except quiet hours, the bookings in the period of t, or in the fullest window that
// contains t.
func (p Policy) Usage(line Timeline, t time.Time) []Usage {
	usage := make([]Usage, 0, len(p))
	for i := range p {
		r := &p[i]
		if r.Quiet {
			continue
		}
		low, high, _ := r.span(&line, t)
		near := line.times(low, high, r.Counts)
		used := len(near)
		if r.Periods == nil {
			used = r.fullest(near, line.offset(t))
		}
		remaining := max(0, r.places()-used)
		if n := len(usage); r.Reserved > 0 && n > 0 && usage[n-1].Rule.Name == r.Name {
			usage[n-1].Remaining = min(usage[n-1].Remaining, remaining)
			continue
		}
		usage = append(usage, Usage{Rule: *r, Used: used, Remaining: remaining})
	}
	return usage
}

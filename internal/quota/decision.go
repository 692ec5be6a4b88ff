package quota

import "time"

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
	line.beginAt(t)
	at := line.offset(t)
	for i := range p {
		var blocks blocks
		if _, broken := p[i].broken(&blocks, &line, t, at); broken {
			return false
		}
	}
	return true
}

// broken reports whether one more booking at t, which has the offset at, breaks the rule. It returns the first block of
// t, and fills blocks.
func (r *Rule) broken(blocks *blocks, line *Timeline, t time.Time, at time.Duration) (block, bool) {
	if r.always() {
		return block{}, true
	}
	blocks.initAt(r, line, t, at)
	return blocks.next(at, at+1)
}

// Violations returns the rules that one more booking at t would break, in the policy's order; none if t is free. Each
// rule appears once, also if its reserved places are full too. Only bookings within [Reach] of t matter.
func (p Policy) Violations(line Timeline, t time.Time) []Violation {
	var violations []Violation
	line.beginAt(t)
	at := line.offset(t)
	for i := range p {
		r := &p[i]
		if n := len(violations); r.Reserved > 0 && n > 0 && violations[n-1].Rule.Name == r.Name {
			continue
		}
		var blocks blocks
		if first, broken := r.broken(&blocks, &line, t, at); broken {
			v := Violation{Rule: *r}
			v.Conflicts, v.Omitted = blocks.conflicts(&line, first, at)
			violations = append(violations, v)
		}
	}
	return violations
}

// Keep drops all but the n conflicts that are nearest to t.
func (v *Violation) Keep(n int, t time.Time) {
	line := NewTimeline(v.Conflicts)
	low, high := nearest(line.at, line.offset(t), n)
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
	line.beginAt(t)
	at := line.offset(t)
	for i := range p {
		r := &p[i]
		if r.Quiet {
			continue
		}
		var blocks blocks
		blocks.initAt(r, &line, t, at)
		used := blocks.used(&line, at)
		remaining := max(0, r.places()-used)
		if n := len(usage); r.Reserved > 0 && n > 0 && usage[n-1].Rule.Name == r.Name {
			usage[n-1].Remaining = min(usage[n-1].Remaining, remaining)
			continue
		}
		usage = append(usage, Usage{Rule: *r, Used: used, Remaining: remaining})
	}
	return usage
}

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

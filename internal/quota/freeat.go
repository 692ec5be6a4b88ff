package quota

import "time"

// FreeAt sets free[i] to whether [Policy.Allows] the time first+i*step. It passes once over the blocked intervals
// instead of deciding each time.
func (p Policy) FreeAt(line Timeline, first time.Time, step time.Duration, free []bool) {
	never := p.never()
	for i := range free {
		free[i] = !never
	}
	if never || len(free) == 0 {
		return
	}
	if len(line.at) == 0 {
		line.origin = first
	}
	s := series{first: line.offset(first), step: step, free: free}
	for i := range p {
		r := &p[i]
		if r.Periods != nil {
			s.blockPeriods(r, &line)
			continue
		}
		low, high := line.within(s.first-r.Window+1, s.at(len(free)-1)+r.Window)
		near := r.runs(line.times(low, high, r.Counts))
		for run := range near.len() {
			if near.full(run) {
				from, until := near.bounds(run)
				s.block(from+1, until)
			}
		}
	}
}

// series is a sequence of times, a step apart, as offsets of a timeline, with a flag for each that is free.
type series struct {
	first, step time.Duration
	free        []bool
}

// at returns the offset of the time with index i.
func (s *series) at(i int) time.Duration { return s.first + time.Duration(i)*s.step }

// since returns the index of the first time at or after an offset.
func (s *series) since(at time.Duration) int {
	if at <= s.first {
		return 0
	}
	return int(min((at-s.first+s.step-1)/s.step, time.Duration(len(s.free))))
}

// block marks the times in [from, until) as taken.
func (s *series) block(from, until time.Duration) {
	for i := s.since(from); i < s.since(until); i++ {
		s.free[i] = false
	}
}

// blockPeriods marks the times in full periods of a rule as taken.
func (s *series) blockPeriods(r *Rule, line *Timeline) {
	if !r.Quiet && len(line.at) < r.places() {
		return // none is full
	}
	counted := line.times(0, len(line.at), r.Counts)
	for i := 0; i < len(s.free); {
		begin, end, inside := r.Periods.Around(line.origin.Add(s.at(i)))
		until := line.offset(end)
		if inside && before(counted, until)-before(counted, line.offset(begin)) >= r.places() {
			s.block(s.at(i), until)
		}
		i = max(i+1, s.since(until))
	}
}

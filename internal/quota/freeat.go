package quota

import "time"

// FreeAt says of as many times as free has places, which are so far apart from the first one on, whether they are free: each
// place gets what [Policy.Allows] says of its time. It goes once through what is blocked, and does not decide about each time.
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

// series is times that are a step apart, as offsets of a timeline, and which of them are free.
type series struct {
	first, step time.Duration
	free        []bool
}

// at is the offset of one of the times.
func (s *series) at(i int) time.Duration { return s.first + time.Duration(i)*s.step }

// since is the number of the first time that is not before an offset.
func (s *series) since(at time.Duration) int {
	if at <= s.first {
		return 0
	}
	return int(min((at-s.first+s.step-1)/s.step, time.Duration(len(s.free))))
}

// block takes the times from one offset until before another.
func (s *series) block(from, until time.Duration) {
	for i := s.since(from); i < s.since(until); i++ {
		s.free[i] = false
	}
}

// blockPeriods takes the times that lie in full periods of a rule.
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

package quota

import "time"

// FreeAt sets free[i] to whether [Policy.Allows] the time first+i*step. It passes once over the blocked intervals
// instead of deciding each time.
func (p Policy) FreeAt(line Timeline, first time.Time, step time.Duration, free []bool) {
	clear(free)
	if p.never() || len(free) == 0 {
		return
	}
	for i := range free {
		free[i] = true
	}
	line.beginAt(first)
	s := series{first: line.offset(first), step: step, free: free}
	end := s.at(len(free)-1) + 1
	for i := range p {
		var blocks blocks
		blocks.init(&p[i], &line, s.first, end)
		for b, ok := blocks.next(s.first, end); ok; b, ok = blocks.next(s.first, end) {
			s.block(b.from, b.until)
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
	clear(s.free[s.since(from):s.since(until)])
}

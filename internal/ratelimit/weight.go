package ratelimit

import "math/bits"

// What Redis is made to do at a time is bounded in microseconds of its time.
// The weights are what calls took where they were measured, at their worst;
// BenchmarkWeight compares.
const callWeight = 10

// weight is what a limit costs of Redis' time at most, in microseconds: more for
// those in which something has to be looked for among many uses.
func (l Limit) weight() int {
	switch l.Algorithm {
	case SlidingLog:
		return searchWeight(l.Limit)
	case SlidingWindow:
		return searchWeight(int((l.Per+l.Precision-1)/l.Precision) + 1)
	}
	return 8
}

// searchWeight is that of a search among so many uses.
func searchWeight(uses int) int { return 12 + 4*bits.Len(uint(uses)) }

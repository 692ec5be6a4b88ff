package ratelimit

import "math/bits"

// The concurrent work of Redis is bounded in microseconds of its time. The weights are measured worst cases of calls;
// BenchmarkWeight compares.
const callWeight = 10

// weight returns the maximum time of Redis that a limit costs, in microseconds. It is higher for limits that have to
// search among many uses.
func (l Limit) weight() int {
	switch l.Algorithm {
	case SlidingLog:
		return searchWeight(l.Limit)
	case SlidingWindow:
		return searchWeight(int((l.Per+l.Precision-1)/l.Precision) + 1)
	}
	return 8
}

// searchWeight returns the weight of a search among uses.
func searchWeight(uses int) int { return 12 + 4*bits.Len(uint(uses)) }

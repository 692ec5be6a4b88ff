package ratelimit

import (
	"math/bits"
	"time"
)

// program is one algorithm as Redis runs it: its script, the numbers that the
// script wants, and the meaning of those that it answers. The script's file
// documents both.
type program struct {
	name    string // of the script
	numbers func(l Limit, cost int) []any
	answers int // how many numbers it answers
	// result reads the answer, but for what all algorithms have in common.
	result func(l Limit, cost int, allowed bool, answer []int64) Result
}

// program returns the algorithm's.
func (a Algorithm) program() program {
	switch a {
	case FixedWindow:
		return program{"fixed_window", counterNumbers, 2, windowResult}
	case SlidingLog:
		return program{"sliding_log", counterNumbers, 3, counterResult}
	case SlidingWindow:
		return program{"sliding_window", bucketedNumbers, 3, counterResult}
	default:
		return program{"bucket", bucketNumbers, 2, bucketResult}
	}
}

func counterNumbers(l Limit, _ int) []any { return []any{l.Limit, l.Per.Microseconds()} }

func bucketedNumbers(l Limit, _ int) []any {
	return []any{l.Limit, l.Per.Microseconds(), l.Precision.Microseconds()}
}

// windowResult reads what is used, and when the window ends.
func windowResult(l Limit, _ int, allowed bool, answer []int64) Result {
	r := Result{Remaining: left(l, answer[0])}
	if !allowed {
		r.RetryAfter = micros(answer[1])
	}
	if answer[0] > 0 {
		r.ResetAfter = micros(answer[1])
	}
	return r
}

// counterResult reads what is used, when there is room, and when all is
// forgotten.
func counterResult(l Limit, _ int, _ bool, answer []int64) Result {
	return Result{Remaining: left(l, answer[0]), RetryAfter: micros(answer[1]), ResetAfter: micros(answer[2])}
}

func left(l Limit, used int64) int { return max(0, l.Limit-int(used)) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// span is a time to the last part of a microsecond, of which there are as many
// as the limit has units: so that per / limit is exact.
type span struct{ whole, parts int64 }

// spanOf is how long so many units take to drip.
func spanOf(l Limit, units int) span {
	hi, lo := bits.Mul64(uint64(units), uint64(l.Per.Microseconds()))
	whole, parts := bits.Div64(hi, lo, uint64(l.Limit))
	return span{int64(whole), int64(parts)}
}

// minus is s - t.
func (s span) minus(t span, l Limit) span {
	d := span{s.whole - t.whole, s.parts - t.parts}
	if d.parts < 0 {
		d.whole, d.parts = d.whole-1, d.parts+int64(l.Limit)
	}
	return d
}

// units is how many drip in s, the last one to its end; none in less than no
// time.
func (s span) units(l Limit) int {
	if s.whole < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(s.whole), uint64(l.Limit))
	lo, carry := bits.Add64(lo, uint64(s.parts), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(l.Per.Microseconds()))
	return int(n)
}

// up is s, rounded up to a microsecond.
func (s span) up() time.Duration {
	if s.parts > 0 {
		s.whole++
	}
	return micros(s.whole)
}

func bucketNumbers(l Limit, cost int) []any {
	add, most := spanOf(l, cost), spanOf(l, l.Burst)
	return []any{l.Limit, add.whole, add.parts, most.whole, most.parts}
}

// bucketResult reads how long the bucket takes to be as before all use.
func bucketResult(l Limit, cost int, allowed bool, answer []int64) Result {
	used := span{answer[0], answer[1]}
	free := spanOf(l, l.Burst).minus(used, l)
	r := Result{Remaining: free.units(l), ResetAfter: used.up()}
	if !allowed {
		r.RetryAfter = spanOf(l, cost).minus(free, l).up()
	}
	return r
}

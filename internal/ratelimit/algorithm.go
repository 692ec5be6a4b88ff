package ratelimit

import (
	"math/bits"
	"time"
)

// A script answers answerSize numbers for each limit: whether it allows the cost, and three numbers of its state.
const answerSize = 4

// program is one algorithm as Redis runs it: its state, its script, the script's arguments, and the meaning of the
// three numbers in its answer. The script's file documents both.
type program struct {
	kind    string // of the state
	name    string // of the script
	numbers func(l Limit, cost int) []any
	// result reads the answer, except for the fields that all algorithms share.
	result func(l Limit, cost int, allowed bool, answer []int64) Result
}

// program returns the limit's program.
func (l Limit) program() program {
	switch {
	case l.Aligned:
		return program{"aligned_window", "fixed_window", windowNumbers, windowResult}
	case l.Algorithm == FixedWindow:
		return program{"fixed_window", "fixed_window", windowNumbers, windowResult}
	case l.Algorithm == SlidingLog:
		return program{"log", "sliding", logNumbers, slidingResult}
	case l.Algorithm == SlidingWindow:
		return program{"steps", "sliding", stepNumbers, slidingResult}
	case l.Refill == Interval:
		return program{"interval_bucket", "interval_bucket", intervalNumbers, intervalResult}
	default:
		return program{string(l.Algorithm), "bucket", bucketNumbers, bucketResult}
	}
}

// Redis gets Aligned as 1 or 0.
func windowNumbers(l Limit, _ int) []any { return []any{l.Limit, l.Per.Microseconds(), l.Aligned} }

// windowResult reads the use, and the end of the window.
func windowResult(l Limit, _ int, allowed bool, answer []int64) Result {
	r := Result{Remaining: left(l.Limit, answer[0])}
	if !allowed {
		r.RetryAfter = micros(answer[1])
	}
	if answer[0] > 0 {
		r.ResetAfter = micros(answer[1])
	}
	return r
}

// A use in a log is forgotten after per; one in steps, per after the end of its step.
func logNumbers(l Limit, _ int) []any { return []any{l.Limit, 1, l.Per.Microseconds()} }

func stepNumbers(l Limit, _ int) []any {
	return []any{l.Limit, l.Precision.Microseconds(), (l.Precision + l.Per).Microseconds()}
}

// slidingResult reads the use, when there is room, and when all is forgotten.
func slidingResult(l Limit, _ int, _ bool, answer []int64) Result {
	return Result{Remaining: left(l.Limit, answer[0]), RetryAfter: micros(answer[1]), ResetAfter: micros(answer[2])}
}

func intervalNumbers(l Limit, _ int) []any { return []any{l.Limit, l.Per.Microseconds(), l.Burst} }

// intervalResult reads the number of missing tokens, and the time of the next ones.
func intervalResult(l Limit, cost int, allowed bool, answer []int64) Result {
	missing, next := answer[0], micros(answer[1])
	// after returns how long it takes until tokens have come.
	after := func(tokens int64) time.Duration {
		intervals := (tokens + int64(l.Limit) - 1) / int64(l.Limit)
		if intervals <= 0 {
			return 0
		}
		return next + time.Duration(intervals-1)*l.Per
	}
	r := Result{Remaining: left(l.Burst, missing), ResetAfter: after(missing)}
	if !allowed {
		r.RetryAfter = after(missing + int64(cost-l.Burst))
	}
	return r
}

func left(most int, used int64) int { return max(0, most-int(used)) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// span is a time in microseconds and parts of a microsecond. The limit is the number of parts in one, so that per /
// limit is exact.
type span struct{ whole, parts int64 }

// spanOf returns how long units take to drip.
func spanOf(l Limit, units int) span {
	hi, lo := bits.Mul64(uint64(units), uint64(l.Per.Microseconds()))
	whole, parts := bits.Div64(hi, lo, uint64(l.Limit))
	return span{int64(whole), int64(parts)}
}

// minus returns s - t.
func (s span) minus(t span, l Limit) span {
	d := span{s.whole - t.whole, s.parts - t.parts}
	if d.parts < 0 {
		d.whole, d.parts = d.whole-1, d.parts+int64(l.Limit)
	}
	return d
}

// units returns how many units drip completely in s; 0 if s is negative.
func (s span) units(l Limit) int {
	if s.whole < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(s.whole), uint64(l.Limit))
	lo, carry := bits.Add64(lo, uint64(s.parts), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(l.Per.Microseconds()))
	return int(n)
}

// up returns s, rounded up to a microsecond.
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

// bucketResult reads how long the bucket takes until it is as before all use.
func bucketResult(l Limit, cost int, allowed bool, answer []int64) Result {
	used := span{answer[0], answer[1]}
	free := spanOf(l, l.Burst).minus(used, l)
	r := Result{Remaining: free.units(l), ResetAfter: used.up()}
	if !allowed {
		r.RetryAfter = spanOf(l, cost).minus(free, l).up()
	}
	return r
}

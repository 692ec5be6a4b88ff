package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/testenv"
)

// comeback returns the time until a limit is replenished, after all of it was used at once.
func comeback(l Limit) int64 {
	l = l.WithDefaults()
	per := l.Per.Microseconds()
	switch {
	case l.Algorithm == SlidingWindow:
		return per + l.Precision.Microseconds()
	case l.Refill == Interval:
		return per * int64((l.Burst+l.Limit-1)/l.Limit)
	case l.Algorithm.bucket():
		return (per*int64(l.Burst) + int64(l.Limit) - 1) / int64(l.Limit)
	}
	return per
}

// TestLimits_ClockGoesBack: by less than a limit's time, and by much more: uses are kept, but for no longer than if
// they had been made at that moment. The answers are right, even if only peeks ask meanwhile.
func TestLimits_ClockGoesBack(t *testing.T) {
	t.Parallel()
	for _, l := range append(variants(),
		Limit{Algorithm: TokenBucket, Limit: 3, Per: time.Second, Burst: 7}, Limit{Algorithm: TokenBucket, Limit: 2, Per: time.Minute, Burst: 7, Refill: Interval},
	) {
		for _, back := range []time.Duration{time.Microsecond, l.Per / 7, l.Per - 1000, l.Per, 3 * l.Per / 2, 100 * l.Per, 30 * 24 * time.Hour} {
			t.Run(fmt.Sprint(l.program().kind, " ", back), func(t *testing.T) {
				t.Parallel()
				p, most := setup(t), l.WithDefaults().capacity()
				p.at(t, minute+1234)
				for _, subject := range []string{"full", "half"} {
					if !p.take(t, subject, l, most).Allowed {
						t.Fatal("all of it is refused")
					}
				}
				p.at(t, p.now+comeback(l)/2)
				before := p.peek(t, "half", l, 1).Remaining
				p.take(t, "full", l, before)

				p.at(t, p.now-back.Microseconds())
				if r := p.peek(t, "half", l, 1); r.Remaining > before {
					t.Errorf("%d were left, and now %d are", before, r.Remaining)
				}
				r := p.take(t, "full", l, 1)
				if r.Allowed || r.Remaining != 0 || r.RetryAfter.Microseconds() > comeback(l) || r.ResetAfter.Microseconds() > comeback(l) || r.ResetAfter < r.RetryAfter {
					t.Errorf("%+v", r)
				}
				for n := int64(1); n <= 10; n++ { // peeking does not put it off
					p.at(t, p.now+(r.RetryAfter.Microseconds()-1)/10)
					p.peek(t, "full", l, most)
				}
				p.at(t, p.now+(r.RetryAfter.Microseconds()-1)%10)
				if r := p.peek(t, "full", l, 1); r.Allowed || r.RetryAfter != time.Microsecond {
					t.Errorf("a microsecond too early: %+v", r)
				}
				p.at(t, p.now+1+(r.ResetAfter-r.RetryAfter).Microseconds())
				if r := p.take(t, "full", l, most); !r.Allowed {
					t.Errorf("it has not come back: %+v", r)
				}
			})
		}
	}
}

// peek demands an answer.
func (p *bundle) peek(t testing.TB, subject string, l Limit, cost int) Result {
	t.Helper()
	d, err := p.Peek(t.Context(), "story", cost, Rule{Subject: subject, Limit: l})
	if err != nil {
		t.Fatal(err)
	}
	return d.Results[0]
}

// TestLimits_PromisesAfterClockJump holds the scripts to their promises in time as it really passes, while the clock
// jumps back now and then, by little or much.
func TestLimits_PromisesAfterClockJump(t *testing.T) {
	t.Parallel()
	p, subjects, jumps := setup(t), 0, 0
	jumping := func(rt *rapid.T) {
		subjects++
		l := limits(Algorithms...).Filter(func(l Limit) bool { return !l.Aligned }).Draw(rt, "limit").WithDefaults()
		p.at(t, start)
		var passed []event
		real, per := int64(start), l.Per.Microseconds()
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			step := steps(l).Draw(rt, "time")
			p.at(t, p.now+step)
			real += step
			if rapid.IntRange(0, 4).Draw(rt, "jump") == 0 {
				jumps++
				back := rapid.OneOf(steps(l), rapid.SampledFrom([]int64{1, per / 2, 50 * per})).Draw(rt, "back")
				p.at(t, max(p.now-back, start/2))
			}
			cost := rapid.IntRange(1, max(1, min(l.capacity(), 9_000)/3)).Draw(rt, "cost")
			if p.take(t, fmt.Sprint(subjects), l, cost).Allowed {
				passed = append(passed, event{real, cost})
			}
		}
		keeps(rt, l, passed)
	}
	testenv.Enough(func() bool { return jumps >= 100 }, func() { rapid.Check(t, jumping) })
	if jumps < 100 {
		t.Errorf("the clock went back %d times only", jumps)
	}
}

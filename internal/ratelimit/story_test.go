package ratelimit

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// classics are the five algorithms, each for ten per minute, with the defaults.
func classics() []Limit {
	var all []Limit
	for _, a := range Algorithms {
		all = append(all, Limit{Algorithm: a, Limit: 10, Per: time.Minute})
	}
	return all
}

// variants are the algorithms in all their forms.
func variants() []Limit {
	return append(classics(), Limit{Algorithm: FixedWindow, Limit: 10, Per: time.Minute, Aligned: true},
		Limit{Algorithm: TokenBucket, Limit: 10, Per: time.Minute, Refill: Interval})
}

// take demands an answer.
func (p *bundle) take(t testing.TB, subject string, l Limit, cost int) Result {
	t.Helper()
	d, err := p.Take(t.Context(), "story", cost, Rule{Subject: subject, Limit: l})
	if err != nil {
		t.Fatal(err)
	}
	return d.Results[0]
}

// minute is a full minute.
const minute = start/60_000_000*60_000_000 + 60_000_000

// TestFixedWindow_BoundaryBurst: a caller uses one unit, then ten in the last millisecond of the minute that begins so,
// and ten in the first of the next. The fixed window allows nearly twice its limit in a minute; the other algorithms do
// not.
func TestFixedWindow_BoundaryBurst(t *testing.T) {
	t.Parallel()
	p := setup(t)
	passed := map[Algorithm]int{}
	for _, moment := range []struct {
		at    int64
		comes int
	}{{minute, 1}, {minute + 60_000_000 - 1000, 10}, {minute + 60_000_000, 10}} {
		p.at(t, moment.at)
		for _, l := range classics() {
			for range moment.comes {
				if p.take(t, "anna", l, 1).Allowed && moment.comes > 1 {
					passed[l.Algorithm]++
				}
			}
		}
	}
	want := map[Algorithm]int{FixedWindow: 19, SlidingLog: 10, SlidingWindow: 9, TokenBucket: 10, LeakyBucket: 1}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Errorf("passed within 2 ms (-want +got):\n%s", diff)
	}
}

// TestResult_Answers checks the answers of each algorithm from the first unit to a refusal and back.
func TestResult_Answers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type answer struct {
		at   time.Duration // after a full minute
		cost int
		want Result
	}
	yes := func(limit, remaining int, reset time.Duration) Result {
		return Result{true, limit, remaining, 0, reset}
	}
	no := func(limit, remaining int, retry, reset time.Duration) Result {
		return Result{false, limit, remaining, retry, reset}
	}
	for name, story := range map[string]struct {
		limit   Limit
		answers []answer
	}{
		"fixed_window": {Limit{Algorithm: FixedWindow, Limit: 3, Per: time.Minute}, []answer{
			{10 * s, 2, yes(3, 1, 60*s)}, {20 * s, 2, no(3, 1, 50*s, 50*s)}, {20 * s, 1, yes(3, 0, 50*s)},
			{70*s - 1000, 1, no(3, 0, 1000, 1000)}, {90 * s, 3, yes(3, 0, 60*s)},
		}},
		"fixed_window, aligned": {Limit{Algorithm: FixedWindow, Limit: 3, Per: time.Minute, Aligned: true}, []answer{
			{10 * s, 2, yes(3, 1, 50*s)}, {20 * s, 2, no(3, 1, 40*s, 40*s)}, {60*s - 1000, 1, yes(3, 0, 1000)}, {60 * s, 3, yes(3, 0, 60*s)},
			{150 * s, 4, no(3, 3, Never, 0)}, {150 * s, 1, yes(3, 2, 30*s)},
		}},
		"sliding_log": {Limit{Algorithm: SlidingLog, Limit: 3, Per: time.Minute}, []answer{
			{10 * s, 2, yes(3, 1, 60*s)}, {20 * s, 1, yes(3, 0, 60*s)}, {30 * s, 1, no(3, 0, 40*s, 50*s)}, {30 * s, 3, no(3, 0, 50*s, 50*s)},
			{70*s - 1000, 1, no(3, 0, 1000, 10*s+1000)}, {70 * s, 2, yes(3, 0, 60*s)},
		}},
		"sliding_log, many": {Limit{Algorithm: SlidingLog, Limit: 8, Per: time.Minute}, []answer{
			{10 * s, 1, yes(8, 7, 60*s)}, {20 * s, 2, yes(8, 5, 60*s)}, {30 * s, 2, yes(8, 3, 60*s)}, {40 * s, 1, yes(8, 2, 60*s)}, {50 * s, 2, yes(8, 0, 60*s)},
			{51 * s, 1, no(8, 0, 19*s, 59*s)}, {51 * s, 2, no(8, 0, 29*s, 59*s)}, {51 * s, 3, no(8, 0, 29*s, 59*s)}, {51 * s, 4, no(8, 0, 39*s, 59*s)},
			{51 * s, 5, no(8, 0, 39*s, 59*s)}, {51 * s, 6, no(8, 0, 49*s, 59*s)}, {51 * s, 8, no(8, 0, 59*s, 59*s)}, {70 * s, 3, no(8, 1, 10*s, 40*s)},
		}},
		"sliding_window": {Limit{Algorithm: SlidingWindow, Limit: 3, Per: time.Minute, Precision: 10 * s}, []answer{
			{12 * s, 2, yes(3, 1, 68*s)}, {25 * s, 1, yes(3, 0, 65*s)}, {30 * s, 1, no(3, 0, 50*s, 60*s)}, {30 * s, 3, no(3, 0, 60*s, 60*s)},
			{80*s - 1000, 1, no(3, 0, 1000, 10*s+1000)}, {80 * s, 2, yes(3, 0, 70*s)},
		}},
		"token_bucket": {Limit{Algorithm: TokenBucket, Limit: 6, Per: time.Minute, Burst: 3}, []answer{
			{10 * s, 2, yes(3, 1, 20*s)}, {15 * s, 2, no(3, 1, 5*s, 15*s)}, {20 * s, 2, yes(3, 0, 30*s)},
			{30*s - 1000, 1, no(3, 0, 1000, 20*s+1000)}, {30 * s, 1, yes(3, 0, 30*s)}, {30 * s, 4, no(3, 0, Never, 30*s)},
		}},
		"token_bucket, interval": {Limit{Algorithm: TokenBucket, Limit: 2, Per: time.Minute, Burst: 5, Refill: Interval}, []answer{
			{10 * s, 4, yes(5, 1, 120*s)}, {15 * s, 2, no(5, 1, 55*s, 115*s)}, {15 * s, 4, no(5, 1, 115*s, 115*s)}, {15 * s, 5, no(5, 1, 115*s, 115*s)},
			{70*s - 1000, 2, no(5, 1, 1000, 60*s+1000)}, {70 * s, 3, yes(5, 0, 180*s)}, {200 * s, 4, yes(5, 0, 170*s)}, {400 * s, 1, yes(5, 4, 60*s)}, {401 * s, 6, no(5, 4, Never, 59*s)},
		}},
		"leaky_bucket": {Limit{Algorithm: LeakyBucket, Limit: 3, Per: time.Second}, []answer{
			{0, 1, yes(1, 0, 333_334*time.Microsecond)}, {333_333 * time.Microsecond, 1, no(1, 0, time.Microsecond, time.Microsecond)},
			{333_334 * time.Microsecond, 1, yes(1, 0, 333_334*time.Microsecond)}, {s, 1, yes(1, 0, 333_334*time.Microsecond)}, {s, 2, no(1, 0, Never, 333_334*time.Microsecond)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			for _, a := range story.answers {
				p.at(t, minute+a.at.Microseconds())
				if diff := cmp.Diff(a.want, p.take(t, "anna", story.limit, a.cost)); diff != "" {
					t.Errorf("at %s, cost %d (-want +got):\n%s", a.at, a.cost, diff)
				}
			}
		})
	}
}

// TestSliding_ManyUses: finds which of hundreds of uses has to be forgotten first, if some expired uses have not been
// removed yet, if some were refunded, and if the clock went back over some.
func TestSliding_ManyUses(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, l := range []Limit{
		{Algorithm: SlidingLog, Limit: 1200, Per: 7 * time.Second}, {Algorithm: SlidingWindow, Limit: 1200, Per: 7 * time.Second, Precision: 10 * time.Millisecond},
	} {
		m := modelOf(l)
		for n := range int64(600) { // in as many buckets, which Redis then keeps in no order
			p.at(t, minute+n*10_000)
			if r := p.take(t, "anna", l, 2); !r.Allowed {
				t.Fatalf("%s: %+v", l.Algorithm, r)
			}
			m.take(p.now, 2)
		}
		p.at(t, minute+7_500_500)
		agrees := func(when string) {
			t.Helper()
			m.clock(p.now)
			for cost := 0; cost <= 1200; cost += 17 {
				if diff := cmp.Diff(resultOf(m, l, p.now, cost, false), p.peek(t, "anna", l, cost)); diff != "" {
					t.Errorf("%s %s, cost %d (-model +Redis):\n%s", l.Algorithm, when, cost, diff)
				}
			}
		}
		agrees("at first")
		for _, back := range []int{1, 1, 5, 400, 3} {
			if _, err := p.Refund(t.Context(), "story", back, Rule{Subject: "anna", Limit: l}); err != nil {
				t.Fatal(err)
			}
			m.refund(p.now, back)
			agrees(fmt.Sprint("after a refund of ", back))
			p.at(t, p.now+70_000)
			m.clock(p.now)
			m.take(p.now, 7)
			p.take(t, "anna", l, 7)
			agrees(fmt.Sprint("and a take after a refund of ", back))
		}
		for _, jump := range []int64{-300_000, -3_000_000} {
			p.at(t, p.now+jump)
			agrees(fmt.Sprint("after a jump of ", jump))
		}
	}
}

// TestBucket_NoDrift: three per second, taken as soon as they are allowed, are three thousand in a thousand seconds,
// though a third of a second is no whole number of microseconds.
func TestBucket_NoDrift(t *testing.T) {
	t.Parallel()
	p, at := setup(t), int64(minute)
	for range 3000 {
		for tries := 0; ; tries++ {
			p.at(t, at)
			r := p.take(t, "anna", Limit{Algorithm: TokenBucket, Limit: 3, Per: time.Second, Burst: 2}, 1)
			if r.Allowed {
				break
			}
			if at += r.RetryAfter.Microseconds(); tries > 0 {
				t.Fatal("refused when it was its time")
			}
		}
	}
	// The first two came at once, and the last at its own time, rounded up.
	if want := int64(minute + 2998*1_000_000/3 + 1); at != want {
		t.Errorf("the last one came %d µs off", at-want)
	}
}

// TestTake_CostBeyondLimit: no cost is so high that it passes.
func TestTake_CostBeyondLimit(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.at(t, start)
	for _, l := range append(classics(),
		Limit{Algorithm: TokenBucket, Limit: MaxLimit, Per: MaxPer}, Limit{Algorithm: TokenBucket, Limit: 1, Per: MaxPer, Burst: 10},
		Limit{Algorithm: TokenBucket, Limit: MaxLimit, Per: MinPer, Burst: MaxLimit}, Limit{Algorithm: SlidingLog, Limit: MaxLogLimit, Per: MaxPer},
		Limit{Algorithm: FixedWindow, Limit: MaxLimit, Per: MaxPer}, Limit{Algorithm: SlidingWindow, Limit: MaxLimit, Per: MaxPer, Precision: MaxPer},
	) {
		capacity := l.WithDefaults().capacity()
		for _, cost := range []int{capacity + 1, math.MaxInt} {
			if r := p.take(t, "anna", l, cost); r.Allowed || r.RetryAfter != Never || r.Remaining != capacity || r.ResetAfter != 0 {
				t.Errorf("%+v, cost %d: %+v", l, cost, r)
			}
		}
		if r := p.take(t, "anna", l, capacity); !r.Allowed || r.Remaining != 0 {
			t.Errorf("%+v: all of it: %+v", l, r)
		}
	}
}

func TestRules_Apart(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.at(t, start)
	one := Limit{Algorithm: TokenBucket, Limit: 1, Per: time.Minute}
	same, other := one, one
	same.Burst = 1 // the default
	other.Per = time.Hour
	d, err := p.Take(t.Context(), "a", 1, Rule{Subject: "anna", Limit: one}, Rule{Subject: "bert", Limit: one}, Rule{Subject: "anna", Limit: same}, Rule{Subject: "anna", Limit: other}, Rule{Subject: "", Limit: one})
	if err != nil || !d.Allowed || len(d.Results) != 5 {
		t.Fatalf("%+v, %v", d, err)
	}
	if diff := cmp.Diff(d.Results[0], d.Results[2]); diff != "" {
		t.Errorf("the same rule twice: %s", diff)
	}
	for i, rule := range []Rule{{Subject: "anna", Limit: one}, {Subject: "bert", Limit: one}, {Subject: "anna", Limit: same}, {Subject: "anna", Limit: other}} {
		for tag, want := range map[string]bool{"a": false, fmt.Sprint("b", i): true} {
			if d, err := p.Take(t.Context(), tag, 1, rule); err != nil || d.Allowed != want {
				t.Errorf("%s %+v: %+v, %v", tag, rule, d, err)
			}
		}
	}
	for _, l := range classics()[:3] {
		twice := []Rule{{Subject: "twice", Limit: l}, {Subject: "twice", Limit: l}}
		for left := 9; left > 6; left-- {
			if d, err := p.Take(t.Context(), "a", 1, twice...); err != nil || d.Results[0].Remaining != left || d.Results[1] != d.Results[0] {
				t.Errorf("the same %s twice: %+v, %v; want %d left", l.Algorithm, d, err, left)
			}
		}
	}
	for _, l := range variants() { // in each form by itself
		if r := p.take(t, "forms", l, 1); !r.Allowed || r.Remaining != r.Limit-1 {
			t.Errorf("%s: %+v", l.program().kind, r)
		}
	}
	if d, err := p.Take(t.Context(), "a", 1); err != nil || !d.Allowed {
		t.Errorf("no rule: %+v, %v", d, err)
	}
}

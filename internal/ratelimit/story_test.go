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

// take demands an answer.
func (p *puppet) take(t testing.TB, subject string, l Limit, cost int) Result {
	t.Helper()
	d, err := p.Take(t.Context(), "story", cost, Rule{subject, l})
	if err != nil {
		t.Fatal(err)
	}
	return d.Results[0]
}

// minute is a full minute.
const minute = start/60_000_000*60_000_000 + 60_000_000

// TestBoundaryBurst: somebody comes once, and with ten in the last millisecond
// of the minute that begins so, and with ten in the first of the next. The fixed
// window lets nearly twice pass what it promises for a minute; none of the
// others does.
func TestBoundaryBurst(t *testing.T) {
	t.Parallel()
	p := newPuppet(t)
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

// TestAnswers tells what each algorithm says on the way from the first unit to
// a refusal and back.
func TestAnswers(t *testing.T) {
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
		"leaky_bucket": {Limit{Algorithm: LeakyBucket, Limit: 3, Per: time.Second}, []answer{
			{0, 1, yes(1, 0, 333_334*time.Microsecond)}, {333_333 * time.Microsecond, 1, no(1, 0, time.Microsecond, time.Microsecond)},
			{333_334 * time.Microsecond, 1, yes(1, 0, 333_334*time.Microsecond)}, {s, 1, yes(1, 0, 333_334*time.Microsecond)}, {s, 2, no(1, 0, Never, 333_334*time.Microsecond)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPuppet(t)
			for _, a := range story.answers {
				p.at(t, minute+a.at.Microseconds())
				if diff := cmp.Diff(a.want, p.take(t, "anna", story.limit, a.cost)); diff != "" {
					t.Errorf("at %s, cost %d (-want +got):\n%s", a.at, a.cost, diff)
				}
			}
		})
	}
}

// TestManyUses: which of hundreds of uses has to be forgotten first, when some
// are already that nobody has swept up yet.
func TestManyUses(t *testing.T) {
	t.Parallel()
	p := newPuppet(t)
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
		for cost := 0; cost <= 1200; cost += 17 {
			d, err := p.Look(t.Context(), "story", cost, Rule{"anna", l})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(resultOf(m, l, p.now, cost, false), d.Results[0]); diff != "" {
				t.Errorf("%s, cost %d (-model +Redis):\n%s", l.Algorithm, cost, diff)
			}
		}
	}
}

// TestNoDrift: three per second, taken as soon as they are allowed, are three
// thousand in a thousand seconds, though a third of a second is no whole number
// of microseconds.
func TestNoDrift(t *testing.T) {
	t.Parallel()
	p, at := newPuppet(t), int64(minute)
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

// TestClockGoesBack: what was used stays used.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	p := newPuppet(t)
	for _, l := range classics() {
		capacity := l.WithDefaults().capacity()
		p.at(t, minute)
		if !p.take(t, "anna", l, capacity).Allowed {
			t.Fatalf("%s: all of it is refused", l.Algorithm)
		}
		for _, back := range []int64{1, 1_000, 30_000_000, 3600_000_000} {
			p.at(t, minute-back)
			if r := p.take(t, "anna", l, 1); r.Allowed || r.Remaining != 0 || r.RetryAfter <= 0 || r.ResetAfter < r.RetryAfter {
				t.Errorf("%s, %d µs back: %+v", l.Algorithm, back, r)
			}
		}
	}
}

// TestCostsBeyondAll: no cost is so high that it passes.
func TestCostsBeyondAll(t *testing.T) {
	t.Parallel()
	p := newPuppet(t)
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

func TestRulesApart(t *testing.T) {
	t.Parallel()
	p := newPuppet(t)
	p.at(t, start)
	one := Limit{Algorithm: TokenBucket, Limit: 1, Per: time.Minute}
	same, other := one, one
	same.Burst = 1 // the default
	other.Per = time.Hour
	d, err := p.Take(t.Context(), "a", 1, Rule{"anna", one}, Rule{"bert", one}, Rule{"anna", same}, Rule{"anna", other}, Rule{"", one})
	if err != nil || !d.Allowed || len(d.Results) != 5 {
		t.Fatalf("%+v, %v", d, err)
	}
	if diff := cmp.Diff(d.Results[0], d.Results[2]); diff != "" {
		t.Errorf("the same rule twice: %s", diff)
	}
	for i, rule := range []Rule{{"anna", one}, {"bert", one}, {"anna", same}, {"anna", other}} {
		for tag, want := range map[string]bool{"a": false, fmt.Sprint("b", i): true} {
			if d, err := p.Take(t.Context(), tag, 1, rule); err != nil || d.Allowed != want {
				t.Errorf("%s %+v: %+v, %v", tag, rule, d, err)
			}
		}
	}
	for _, l := range classics()[:3] {
		twice := []Rule{{"twice", l}, {"twice", l}}
		for left := 9; left > 6; left-- {
			if d, err := p.Take(t.Context(), "a", 1, twice...); err != nil || d.Results[0].Remaining != left || d.Results[1] != d.Results[0] {
				t.Errorf("the same %s twice: %+v, %v; want %d left", l.Algorithm, d, err, left)
			}
		}
	}
	if d, err := p.Take(t.Context(), "a", 1); err != nil || !d.Allowed {
		t.Errorf("no rule: %+v, %v", d, err)
	}
}

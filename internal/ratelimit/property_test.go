package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sendquota/sendquota/internal/testenv"
	"pgregory.net/rapid"
)

// start is the initial time of the tests' clocks: in a real year, because the numbers must have real lengths, and not
// on an edge of anything.
const start = 1_795_000_000_123_457

func limits(algorithms ...Algorithm) *rapid.Generator[Limit] {
	return rapid.Custom(func(t *rapid.T) Limit {
		l := Limit{
			Algorithm: rapid.SampledFrom(algorithms).Draw(t, "algorithm"),
			Limit:     rapid.OneOf(rapid.IntRange(1, 12), rapid.SampledFrom([]int{97, 1000, 9973})).Draw(t, "limit"),
			Per: rapid.OneOf(
				rapid.Map(rapid.Int64Range(1, 300), func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }),
				rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, MaxPer}),
			).Draw(t, "per"),
		}
		if l.Algorithm != SlidingLog && rapid.IntRange(0, 9).Draw(t, "huge") == 0 {
			l.Limit = rapid.SampledFrom([]int{MaxLimit, 999_999_937}).Draw(t, "limit")
		}
		if l.Algorithm.bucket() && rapid.Bool().Draw(t, "with burst") {
			l.Burst = rapid.OneOf(rapid.IntRange(1, 12), rapid.Just(l.Limit)).Draw(t, "burst")
		}
		if l.Algorithm == SlidingWindow && rapid.Bool().Draw(t, "with precision") {
			ms := l.Per.Milliseconds()
			l.Precision = time.Duration(rapid.Int64Range((ms+999)/1000, ms).Draw(t, "precision")) * time.Millisecond
		}
		if len(l.Validate()) > 0 { // a burst that takes too long
			l.Burst = 0
		}
		l.Aligned = l.Algorithm == FixedWindow && rapid.Bool().Draw(t, "aligned")
		if l.Algorithm == TokenBucket {
			l.Refill = rapid.SampledFrom(Refills).Draw(t, "refill")
		}
		return l
	})
}

// costs of a limit are small ones, those near its capacity, and a few that it never has.
func costs(l Limit) *rapid.Generator[int] {
	c := l.WithDefaults().capacity()
	return rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, min(c+1, 10_001)), rapid.SampledFrom([]int{c, c + 1, 1_000_000}))
}

// steps of time are those around which something changes for a limit.
func steps(l Limit) *rapid.Generator[int64] {
	per := l.Per.Microseconds()
	each := max(1, per/int64(l.Limit))
	return rapid.OneOf(
		rapid.SampledFrom([]int64{0, 0, 1, 999, 1000, per - 1, per, per + 1, each - 1, each, each + 1, 2*per + each}),
		rapid.Int64Range(0, 2*per),
		rapid.Int64Range(0, 3*each),
	)
}

// together is one tag with its limits, in Redis and as models.
type together struct {
	*bundle
	tag    string
	rules  []Rule
	models []model
	seen   map[string]int
}

// decide asks both, and compares all they say.
func (w *together) decide(t *rapid.T, verb string, cost int, which ...int) Decision {
	var rules []Rule
	want, spends := Decision{Allowed: true}, verb == take && cost > 0
	for _, i := range which {
		rules = append(rules, w.rules[i])
		w.models[i].clock(w.now)
		switch {
		case verb == refund && cost > 0:
			w.models[i].refund(w.now, cost)
		case verb == reset:
			w.models[i] = modelOf(w.rules[i].Limit)
		}
		want.Allowed = want.Allowed && cost <= w.models[i].free(w.now)
	}
	for _, i := range which {
		want.Results = append(want.Results, resultOf(w.models[i], w.rules[i].Limit, w.now, cost, spends && want.Allowed))
	}
	got, err := w.Limiter.decide(t.Context(), verb, w.tag, cost, rules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("at %d, %s %d of %+v (-model +Redis):\n%s", w.now, verb, cost, rules, diff)
	}
	for i, r := range got.Results {
		w.seen[fmt.Sprintf("%s %s %v", rules[i].Limit.program().kind, verb, r.Allowed)]++
	}
	return got
}

// agree sends random traffic at one or several limits of two subjects, with a clock that now and then goes back, and
// compares every field of every answer. It counts what it sees.
func agree(t *testing.T, p *bundle, limits *rapid.Generator[Limit], seen map[string]int) {
	rapid.Check(t, func(rt *rapid.T) {
		seen["checks"]++
		w := &together{bundle: p, tag: fmt.Sprint("tag-", seen["checks"]), seen: seen}
		for _, l := range rapid.SliceOfNDistinct(limits, 1, 4, Limit.WithDefaults).Draw(rt, "limits") {
			for _, subject := range []string{"anna", "bert"} {
				w.rules, w.models = append(w.rules, Rule{Subject: subject, Limit: l}), append(w.models, modelOf(l))
			}
		}
		p.at(t, start)
		some := rapid.SliceOfNDistinct(rapid.IntRange(0, len(w.rules)-1), 1, 3, rapid.ID)
		rt.Repeat(map[string]func(*rapid.T){
			"pass": func(rt *rapid.T) {
				l := rapid.SampledFrom(w.rules).Draw(rt, "of").Limit
				p.at(t, p.now+steps(l).Draw(rt, "time"))
			},
			"go back": func(rt *rapid.T) {
				l := rapid.SampledFrom(w.rules).Draw(rt, "of").Limit
				back := rapid.OneOf(steps(l), rapid.SampledFrom([]int64{1, 100 * l.Per.Microseconds()})).Draw(rt, "time")
				p.at(t, max(p.now-back, start/2))
			},
			"take": func(rt *rapid.T) {
				which := some.Draw(rt, "rules")
				w.decide(rt, take, costs(w.rules[which[0]].Limit).Draw(rt, "cost"), which...)
			},
			"peek": func(rt *rapid.T) {
				which := some.Draw(rt, "rules")
				w.decide(rt, peek, costs(w.rules[which[0]].Limit).Draw(rt, "cost"), which...)
			},
			"refund": func(rt *rapid.T) {
				which := some.Draw(rt, "rules")
				w.decide(rt, refund, costs(w.rules[which[0]].Limit).Draw(rt, "cost"), which...)
			},
			"reset": func(rt *rapid.T) {
				which := some.Draw(rt, "rules")
				w.decide(rt, reset, costs(w.rules[which[0]].Limit).Draw(rt, "cost"), which...)
			},
			"use up, and wait": func(rt *rapid.T) {
				i := rapid.IntRange(0, len(w.rules)-1).Draw(rt, "rule")
				cost := rapid.IntRange(1, min(5, w.rules[i].Limit.WithDefaults().capacity())).Draw(rt, "cost")
				var d Decision
				for n := 0; n < 20; n++ {
					if d = w.decide(rt, take, cost, i); !d.Allowed {
						break
					}
				}
				if d.Allowed {
					return // it holds too much
				}
				p.at(t, p.now+d.Results[0].RetryAfter.Microseconds()-1)
				if w.decide(rt, peek, cost, i).Allowed {
					rt.Fatalf("allowed before its time")
				}
				p.at(t, p.now+1)
				if !w.decide(rt, take, cost, i).Allowed {
					rt.Fatalf("refused when it was its time")
				}
			},
		})
	})
}

// TestScripts_Models: scripts and models agree, in all algorithms.
func TestScripts_Models(t *testing.T) {
	t.Parallel()
	p, seen := setup(t), map[string]int{}
	rare := func() (kinds []string) {
		for _, l := range variants() {
			for what, least := range map[string]int{"take true": 20, "take false": 10, "refund true": 6, "reset true": 3} {
				if kind := l.program().kind + " " + what; seen[kind] < least {
					kinds = append(kinds, kind)
				}
			}
		}
		return kinds
	}
	testenv.Enough(func() bool { return len(rare()) == 0 }, func() {
		for range 5 {
			agree(t, p, limits(Algorithms...), seen)
		}
	})
	if kinds := rare(); len(kinds) > 0 {
		t.Errorf("too few of %q", kinds)
	}
	t.Log(seen)
}

// TestSliding_TotalsBeginAnew: the totals of a list are counted modulo a number, here a small one.
func TestSliding_TotalsBeginAnew(t *testing.T) {
	t.Parallel()
	small := limits(SlidingLog, SlidingWindow).Filter(func(l Limit) bool { return l.Limit < 13 })
	agree(t, setup(t, "local modulus = 1000000000000000", "local modulus = 13"), small, map[string]int{})
}

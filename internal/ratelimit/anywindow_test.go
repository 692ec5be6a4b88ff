package ratelimit

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestLimits_Promises holds the scripts to what the documentation promises, in all time spans of random traffic,
// without any model of how they do it.
func TestLimits_Promises(t *testing.T) {
	t.Parallel()
	p, subjects := setup(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		subjects++
		l := limits(Algorithms...).Draw(rt, "limit").WithDefaults()
		p.at(t, start)
		var passed []event
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			p.at(t, p.now+steps(l).Draw(rt, "time"))
			cost := rapid.IntRange(1, max(1, min(l.capacity(), 9_000)/3)).Draw(rt, "cost")
			if p.take(t, fmt.Sprint(subjects), l, cost).Allowed {
				passed = append(passed, event{p.now, cost})
			} else if l.Algorithm == SlidingLog || l.Algorithm == SlidingWindow {
				strict := used(passed, p.now-l.Per.Microseconds()-l.Precision.Microseconds(), p.now)
				if strict+cost <= l.Limit {
					rt.Fatalf("%+v: refused %d though only %d came within per and one precision", l, cost, strict)
				}
			}
		}
		keeps(rt, l, passed)
	})
}

// keeps holds what passed to the promise of a limit, in all time spans.
func keeps(rt *rapid.T, l Limit, passed []event) {
	per := l.Per.Microseconds()
	for i, first := range passed {
		for _, last := range passed[i:] {
			n, span := used(passed[i:], first.at-1, last.at), last.at-first.at
			broken := false
			switch {
			case l.Refill == Interval:
				broken = n > l.Burst+l.Limit*int(span/per+1)
			case l.Algorithm.bucket():
				broken = float64(n) > float64(l.Burst)+float64(l.Limit)*float64(span)/float64(per)+1e-6
			case l.Algorithm == FixedWindow:
				broken = span < per && n > 2*l.Limit
			default:
				broken = span < per && n > l.Limit
			}
			if broken {
				rt.Fatalf("%+v: %d in %d µs", l, n, span)
			}
		}
	}
}

// event is a cost that was allowed.
type event struct {
	at   int64
	cost int
}

// used sums what came after one time and not after another.
func used(events []event, after, until int64) (n int) {
	for _, e := range events {
		if e.at > after && e.at <= until {
			n += e.cost
		}
	}
	return n
}

package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// heavy are the limits that keep the most uses.
func heavy() []Limit {
	return []Limit{
		{Algorithm: SlidingLog, Limit: MaxLogLimit, Per: time.Hour},
		{Algorithm: SlidingWindow, Limit: 10 * MaxPrecisions, Per: time.Hour, Precision: time.Hour / MaxPrecisions},
	}
}

// sixteen returns the maximum number of limits of a call, with the given uses of each, one in each thousandth, or ten
// thousandth, of the time. A part of the uses is forgotten by now.
func (p *bundle) sixteen(t testing.TB, l Limit, uses int64, forgotten float64) []Rule {
	t.Helper()
	var rules []Rule
	step := l.Per.Microseconds() / MaxPrecisions
	if l.Algorithm == SlidingLog {
		step /= 10
	}
	p.at(t, minute)
	first := p.now/step*step + l.Per.Microseconds() - int64(float64(uses)*forgotten)*step
	for i := range 16 {
		r := Rule{Subject: strconv.Itoa(i), Limit: l}
		rules = append(rules, r)
		list := make([]any, uses)
		for n := range uses {
			list[n] = fmt.Sprint(first+n*step-l.Per.Microseconds()+step, n+1, 1)
		}
		if err := p.rdb.RPush(t.Context(), "sq:"+slotOf("story")+keyOf(r), list...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return rules
}

// micros returns the time of a call in Redis: the minimum of many, because a busy machine interrupts some.
func (p *bundle) micros(t testing.TB, verb string, cost int, rules []Rule) float64 {
	t.Helper()
	least, calls := math.MaxFloat64, 80
	if testing.Short() {
		calls = 25
	}
	for n := range calls {
		p.rdb.ConfigResetStat(t.Context())
		if _, err := p.decide(t.Context(), verb, "story", cost, rules); err != nil {
			t.Fatal(err)
		}
		if n > 0 { // the script is known
			_, micros := usage(t, p.rdb)
			least = min(least, micros)
		}
	}
	return least
}

// weighed are calls, the cost of each, and how often that is used up.
var weighed = []struct {
	name, verb string
	cost       func(l Limit) int
}{
	{"peek", peek, func(Limit) int { return 1 }},
	{"take", take, func(Limit) int { return 1 }},
	{"refused", take, func(l Limit) int { return l.Limit/4 + l.Limit/2 + 3 }},
	{"refund", refund, func(Limit) int { return 1 }},
}

// TestWeight_ManyUses: ten times as many less than four times as much. Of the few, too, some are left after the last
// refund.
func TestWeight_ManyUses(t *testing.T) {
	t.Parallel()
	few, many := setupOwn(t), setupOwn(t)
	for _, l := range heavy() {
		for _, call := range weighed {
			t.Run(l.program().kind+" "+call.name, func(t *testing.T) {
				for _, p := range []*bundle{few, many} {
					testenv.Check(t, p.rdb.FlushDB(t.Context()).Err())
				}
				small := l
				small.Limit /= 10
				uses := int64(l.Limit)
				if l.Algorithm == SlidingWindow {
					uses = MaxPrecisions
				}
				least := few.micros(t, call.verb, call.cost(small), few.sixteen(t, small, uses/10, 0.1))
				most := many.micros(t, call.verb, call.cost(l), many.sixteen(t, l, uses, 0.1))
				if t.Logf("%.0f µs, %.0f µs", least, most); most > 4*least {
					t.Errorf("%.0f µs against %.0f", most, least)
				}
			})
		}
	}
}

// setupOwn has a Redis for itself.
func setupOwn(t testing.TB) *bundle {
	t.Helper()
	rdb := client(t, testenv.OwnRedis(t).URL)
	return &bundle{Limiter: newLimiter(rdb, strict(t), textWithClock(t)), rdb: rdb}
}

// BenchmarkWeight compares what sixteen limits take of Redis' time with their weight.
func BenchmarkWeight(b *testing.B) {
	for _, l := range append(variants(), heavy()...) {
		for _, call := range weighed {
			b.Run(l.program().kind+"-"+strconv.Itoa(l.Limit)+"-"+call.name, func(b *testing.B) {
				p, uses := setupOwn(b), int64(0)
				if l.Limit >= MaxLogLimit {
					uses = MaxPrecisions
				}
				var rules []Rule
				if l = l.WithDefaults(); uses > 0 {
					rules = p.sixteen(b, l, uses, 0.5)
				} else {
					p.at(b, minute)
					for i := range 16 {
						rules = append(rules, Rule{Subject: strconv.Itoa(i), Limit: l})
					}
				}
				b.ReportMetric(p.micros(b, call.verb, call.cost(l), rules), "µs-in-Redis/op")
				b.ReportMetric(float64(p.plan("", "story", call.verb, 1, rules).Weight), "weight")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

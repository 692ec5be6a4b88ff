package quota_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// ruleTest reports whether one more booking at t breaks the rule.
type ruleTest func(r quota.Rule, bookings []quota.Booking, t time.Time) bool

// mutants are wrong rule tests. Each is a plausible mistake.
var mutants = map[string]ruleTest{
	"one-sided window": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return len(between(bookings, t.Add(1-r.Window), t))+1 > r.Limit
	},
	"only later bookings": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return len(between(bookings, t, t.Add(r.Window-1)))+1 > r.Limit
	},
	"one-sided in both directions": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return len(between(bookings, t.Add(1-r.Window), t))+1 > r.Limit || len(between(bookings, t, t.Add(r.Window-1)))+1 > r.Limit
	},
	"symmetric count": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return len(between(bookings, t.Add(1-r.Window), t.Add(r.Window-1)))+1 > r.Limit
	},
	"fixed windows": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		from := t.Truncate(r.Window)
		return len(between(bookings, from, from.Add(r.Window-1)))+1 > r.Limit
	},
	"closed windows": runs(func(r quota.Rule, a, b, t time.Time) bool {
		return b.Sub(a) <= r.Window && !t.Before(b.Add(-r.Window)) && !t.After(a.Add(r.Window))
	}, 0),
	"a run may span the window": runs(func(r quota.Rule, a, b, t time.Time) bool {
		return b.Sub(a) <= r.Window && inOpen(t, b.Add(-r.Window), a.Add(r.Window)) || b.Sub(a) == r.Window && t.Equal(a)
	}, 0),
	"closed at its beginning": runs(func(r quota.Rule, a, b, t time.Time) bool {
		return b.Sub(a) < r.Window && !t.Before(b.Add(-r.Window)) && t.Before(a.Add(r.Window))
	}, 0),
	"one too few":  runs(blocks, -1),
	"one too many": runs(blocks, +1),
	"a run that t does not belong to": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		all := insert(slices.Clone(bookings), quota.Booking{At: t})
		for i := r.Limit; i < len(all); i++ {
			if all[i].At.Sub(all[i-r.Limit].At) < r.Window {
				return true
			}
		}
		return false
	},
	"only the run before and the run behind": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		before, behind := between(bookings, t.Add(1-r.Window), t), between(bookings, t.Add(1), t.Add(r.Window-1))
		return len(before) >= r.Limit || len(behind) >= r.Limit
	},
	"limit 0 does not limit": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return r.Limit > 0 && runs(blocks, 0)(r, bookings, t)
	},
	"equal times count once": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return runs(blocks, 0)(r, slices.CompactFunc(slices.Clone(bookings), func(a, b quota.Booking) bool { return a.At.Equal(b.At) }), t)
	},
}

// between returns the bookings in [from, until].
func between(bookings []quota.Booking, from, until time.Time) []quota.Booking {
	return inside(bookings, from, until.Sub(from)+1)
}

func inOpen(t, from, until time.Time) bool { return t.After(from) && t.Before(until) }

// blocks is the correct test of a run from a to b.
func blocks(r quota.Rule, a, b, t time.Time) bool {
	return b.Sub(a) < r.Window && inOpen(t, b.Add(-r.Window), a.Add(r.Window))
}

// runs tests all runs of the limit's length, plus off.
func runs(blocks func(r quota.Rule, a, b, t time.Time) bool, off int) ruleTest {
	return func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		n := r.Limit + off
		if n <= 0 {
			return r.Limit <= 0 || off < 0
		}
		for i := n; i <= len(bookings); i++ {
			if blocks(r, bookings[i-n].At, bookings[i-1].At, t) {
				return true
			}
		}
		return false
	}
}

// scopedMutants are wrong tests of rules with periods, scopes and reserved places.
var scopedMutants = map[string]ruleTest{
	"all bookings count": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		r.Counts = nil
		return oracleBroken(r, bookings, t)
	},
	"a channel or a category suffices": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		if s := r.Counts; s != nil && s.Channels != nil && s.Categories != nil {
			bookings = slices.DeleteFunc(slices.Clone(bookings), func(b quota.Booking) bool {
				return !slices.Contains(s.Channels, b.Kind.Channel) && !slices.Contains(s.Categories, b.Kind.Category)
			})
			r.Counts = nil
		}
		return oracleBroken(r, bookings, t)
	},
	"the beneficiaries use up reserved places": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		if r.Counts != nil {
			r.Counts = &quota.Scope{Channels: r.Counts.Channels, Categories: r.Counts.Categories}
		}
		return oracleBroken(r, bookings, t)
	},
	"no places are reserved": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		r.Reserved = 0
		return oracleBroken(r, bookings, t)
	},
	"reserved places are added": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		r.Reserved = -r.Reserved
		return oracleBroken(r, bookings, t)
	},
	"a period is a window": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		if b, ok := r.Periods.(beats); ok && !r.Quiet {
			r.Window, r.Periods = b.Every, nil
		}
		return oracleBroken(r, bookings, t)
	},
	"a period blocks the first instant of the next": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return oracleBroken(r, bookings, t) || r.Periods != nil && oracleBroken(r, bookings, t.Add(-grain/2))
	},
	"a period does not block its first instant": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return oracleBroken(r, bookings, t) && (r.Periods == nil || !r.Quiet || oracleBroken(r, bookings, t.Add(-grain)))
	},
	"quiet hours block nothing": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return !r.Quiet && oracleBroken(r, bookings, t)
	},
	"quiet hours block the day": func(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
		return r.Quiet || oracleBroken(r, bookings, t)
	},
}

// counterexample searches for a calendar where v and the oracle disagree. It draws the calendars of the properties.
func counterexample(v ruleTest, cases *rapid.Generator[calendar]) (calendar, time.Time, bool) {
	times := moments(grain)
	for seed := range 3000 {
		c, at := cases.Example(seed), times.Example(seed)
		if slices.ContainsFunc(c.policy, func(r quota.Rule) bool { return v(r, c.bookings, at) != oracleBroken(r, c.bookings, at) }) {
			return c, at, true
		}
	}
	return calendar{}, time.Time{}, false
}

// TestMutants shows that the properties can fail. On the calendars that they draw, every wrong test disagrees with the
// oracle, and the correct one does not.
func TestMutants(t *testing.T) {
	t.Parallel()
	violations := func(r quota.Rule, bookings []quota.Booking, at time.Time) bool {
		return len(quota.Policy{r}.Violations(quota.NewTimeline(bookings), at)) > 0
	}
	for _, row := range []struct {
		cases   *rapid.Generator[calendar]
		right   map[string]ruleTest
		mutants map[string]ruleTest
	}{
		{calendars(grain, 0), map[string]ruleTest{"the runs of this file": runs(blocks, 0), "Violations": violations}, mutants},
		{scopedCalendars(grain, 0), map[string]ruleTest{"Violations of scoped rules": violations}, scopedMutants},
	} {
		for name, v := range row.right {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if c, at, found := counterexample(v, row.cases); found {
					t.Errorf("is wrong: %v at %s", c, at.Sub(noon))
				}
			})
		}
		for name, v := range row.mutants {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c, at, found := counterexample(v, row.cases)
				if !found {
					t.Fatal("no counterexample: the properties would let it pass")
				}
				t.Logf("caught by %v at %s", c, at.Sub(noon))
			})
		}
	}
}

package quota_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// The oracle knows nothing of runs and intervals. It slides a window over every grain of time and counts. All generated
// times and windows are multiples of a grain, so no window is missed. For a rule with periods, it counts the bookings
// in the same period.
const grain = time.Second / 2

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// windows calls do with the beginning of every window of this length that contains t.
func windows(t time.Time, length time.Duration, do func(from time.Time)) {
	for from := t.Add(grain - length); !from.After(t); from = from.Add(grain) {
		do(from)
	}
}

// inside returns the bookings in [from, from+length).
func inside(bookings []quota.Booking, from time.Time, length time.Duration) []quota.Booking {
	var in []quota.Booking
	for _, b := range bookings {
		if !b.At.Before(from) && b.At.Before(from.Add(length)) {
			in = append(in, b)
		}
	}
	return in
}

// beats are periods for tests: in every interval Every, counted from noon, the part [From, Until).
type beats struct{ Every, From, Until time.Duration }

// number returns the index of the beat that t lies in.
func (b beats) number(t time.Time) (n int, inside bool) {
	since := t.Sub(noon) + 1000*b.Every
	in := since % b.Every
	return int(since / b.Every), b.From <= in && in < b.Until
}

func (b beats) Around(t time.Time) (from, until time.Time, inside bool) {
	n, inside := b.number(t)
	begin := noon.Add(time.Duration(n-1000) * b.Every)
	switch {
	case inside:
		return begin.Add(b.From), begin.Add(b.Until), true
	case t.Before(begin.Add(b.From)):
		return begin, begin.Add(b.From), false
	}
	return begin.Add(b.Until), begin.Add(b.Every), false
}

func (b beats) Longest() time.Duration { return b.Until - b.From }

// inPeriod returns the bookings in the period of t.
func inPeriod(periods beats, bookings []quota.Booking, t time.Time) []quota.Booking {
	n, _ := periods.number(t)
	return slices.DeleteFunc(slices.Clone(bookings), func(b quota.Booking) bool {
		other, inside := periods.number(b.At)
		return !inside || other != n
	})
}

// counted returns the bookings that a rule counts.
func counted(r quota.Rule, bookings []quota.Booking) []quota.Booking {
	return slices.DeleteFunc(slices.Clone(bookings), func(b quota.Booking) bool {
		s := r.Counts
		return s != nil && (s.Channels != nil && !slices.Contains(s.Channels, b.Kind.Channel) ||
			s.Categories != nil && !slices.Contains(s.Categories, b.Kind.Category) || slices.Contains(s.Without, b.Kind.Category))
	})
}

// oracleUsed counts the bookings in the fullest window around t.
func oracleUsed(r quota.Rule, bookings []quota.Booking, t time.Time) int {
	most := 0
	bookings = counted(r, bookings)
	if r.Periods != nil {
		return len(inPeriod(r.Periods.(beats), bookings, t))
	}
	windows(t, r.Window, func(from time.Time) { most = max(most, len(inside(bookings, from, r.Window))) })
	return most
}

// oracleBroken reports whether one more booking at t overfills a window.
func oracleBroken(r quota.Rule, bookings []quota.Booking, t time.Time) bool {
	if r.Periods != nil {
		if _, inside := r.Periods.(beats).number(t); !inside {
			return false
		}
	}
	return oracleUsed(r, bookings, t)+1 > r.Limit-r.Reserved
}

// oracleConflicts returns the bookings in the windows that t would overfill.
func oracleConflicts(r quota.Rule, bookings []quota.Booking, t time.Time) []uuid.UUID {
	var ids []uuid.UUID
	places := r.Limit - r.Reserved
	bookings = counted(r, bookings)
	if r.Periods != nil && places > 0 {
		for _, b := range inPeriod(r.Periods.(beats), bookings, t) {
			ids = append(ids, b.ID)
		}
		return ids
	}
	windows(t, r.Window, func(from time.Time) {
		if in := inside(bookings, from, r.Window); places > 0 && len(in) >= places {
			for _, b := range in {
				if !slices.Contains(ids, b.ID) {
					ids = append(ids, b.ID)
				}
			}
		}
	})
	return ids
}

func oracleFree(p quota.Policy, bookings []quota.Booking, t time.Time) bool {
	return !slices.ContainsFunc(p, func(r quota.Rule) bool { return oracleBroken(r, bookings, t) })
}

// calendar is a recipient's bookings under a policy.
type calendar struct {
	policy   quota.Policy
	bookings []quota.Booking // by time
}

func (c calendar) String() string {
	s := ""
	for _, r := range c.policy {
		s += fmt.Sprintf("%d−%d per %s %v of %+v, ", r.Limit, r.Reserved, r.Window, r.Periods, r.Counts)
	}
	s += "booked"
	for _, b := range c.bookings {
		s += fmt.Sprintf(" %+v%v", b.At.Sub(noon), b.Kind)
	}
	return s
}

const span = 60 * time.Second // the calendars' length

// lengths draws multiples of the unit, and as often of five seconds: mistakes show where times are exactly a window
// apart.
func lengths(least, most, unit time.Duration) *rapid.Generator[time.Duration] {
	multiples := func(unit time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(int((least+unit-1)/unit), int(most/unit)), func(n int) time.Duration { return time.Duration(n) * unit })
	}
	return rapid.OneOf(multiples(unit), multiples(5*time.Second))
}

func moments(unit time.Duration) *rapid.Generator[time.Time] {
	return rapid.Map(lengths(0, span, unit), func(d time.Duration) time.Time { return noon.Add(d) })
}

// policies draws one to three rules, some with a 1-per-window rule and, if leastLimit is 0, some that allow nothing.
func policies(leastLimit int) *rapid.Generator[quota.Policy] {
	rule := rapid.Custom(func(t *rapid.T) quota.Rule {
		return quota.Rule{
			Limit:  rapid.IntRange(leastLimit, 4).Draw(t, "limit"),
			Window: lengths(grain, 25*time.Second, grain).Draw(t, "window"),
		}
	})
	return rapid.Custom(func(t *rapid.T) quota.Policy {
		p := quota.Policy(rapid.SliceOfN(rule, 1, 3).Draw(t, "rules"))
		for i := range p {
			p[i].Name = fmt.Sprintf("rule-%d", i)
		}
		return p
	})
}

// calendars draws a policy and bookings. Half of the bookings obey the policy, the others are anything that an earlier
// policy may have allowed.
func calendars(unit time.Duration, leastLimit int) *rapid.Generator[calendar] {
	return calendarsOf(policies(leastLimit), rapid.Just(quota.Kind{}), unit)
}

// scopedCalendars draws calendars of scoped policies.
func scopedCalendars(unit time.Duration, leastLimit int) *rapid.Generator[calendar] {
	return rapid.OneOf(calendars(unit, leastLimit), calendarsOf(scopedPolicies(leastLimit), kinds(), unit))
}

func calendarsOf(policies *rapid.Generator[quota.Policy], kinds *rapid.Generator[quota.Kind], unit time.Duration) *rapid.Generator[calendar] {
	return rapid.Custom(func(t *rapid.T) calendar {
		c := calendar{policy: policies.Draw(t, "policy")}
		legal := rapid.Bool().Draw(t, "legal")
		for i, at := range rapid.SliceOfN(moments(unit), 0, 10).Draw(t, "times") {
			if !legal || oracleFree(c.policy, c.bookings, at) {
				b := booking(i, at)
				b.Kind = kinds.Draw(t, "kind")
				c.bookings = insert(c.bookings, b)
			}
		}
		return c
	})
}

// kinds draws from a few, so that bookings share some.
func kinds() *rapid.Generator[quota.Kind] {
	return rapid.SampledFrom([]quota.Kind{{}, {Channel: "sms"}, {Category: "news"}, {Channel: "sms", Category: "news"}, {Channel: "email", Category: "offers"}})
}

// scopedPolicies draws rules with periods, scopes and reserved places, and quiet hours that leave ten seconds free.
func scopedPolicies(leastLimit int) *rapid.Generator[quota.Policy] {
	someOf := func(names ...string) *rapid.Generator[[]string] {
		return rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID[string]))
	}
	seconds := func(least, most int) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(least, most), func(n int) time.Duration { return time.Duration(n) * time.Second })
	}
	return rapid.Custom(func(t *rapid.T) quota.Policy {
		var all quota.Policy
		for _, r := range policies(leastLimit).Draw(t, "rules") {
			if rapid.Bool().Draw(t, "periodic") {
				every := seconds(5, 25).Draw(t, "every")
				r.Window, r.Periods = 0, beats{Every: every, Until: every}
			}
			scope := quota.Scope{Channels: someOf("sms", "email").Draw(t, "channels"), Categories: someOf("news", "offers", "").Draw(t, "categories")}
			if rapid.Bool().Draw(t, "scoped") {
				r.Counts = &scope
			}
			all = append(all, r)
			if r.Limit > leastLimit && rapid.Bool().Draw(t, "reserves") {
				scope.Without = []string{rapid.SampledFrom([]string{"news", "offers"}).Draw(t, "for")}
				r.Counts, r.Reserved = &scope, rapid.IntRange(1, r.Limit-leastLimit).Draw(t, "reserved")
				all = append(all, r)
			}
		}
		if rapid.Bool().Draw(t, "quiet") {
			every := seconds(15, 40).Draw(t, "every")
			from := seconds(0, int(every/time.Second)-11).Draw(t, "from")
			night := beats{Every: every, From: from, Until: from + seconds(1, int((every-from)/time.Second)-10).Draw(t, "length")}
			all = append(all, quota.Rule{Name: "night", Periods: night, Quiet: true})
		}
		return all
	})
}

func booking(i int, at time.Time) quota.Booking {
	return quota.Booking{ID: uuid.UUID{15: byte(i + 1)}, At: at}
}

// insert puts b into bookings sorted by time, behind its equals.
func insert(bookings []quota.Booking, b quota.Booking) []quota.Booking {
	return quota.NewTimeline(bookings).Insert(b).Bookings()
}

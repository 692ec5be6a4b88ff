package campaign_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestSimulate_EqualsStart: with nothing in between, a start has the simulated result for each recipient, and the
// totals are the sums of the recipients.
func TestSimulate_EqualsStart(t *testing.T) {
	t.Parallel()
	b, seen := setup(t), map[string]int{}
	b.parse = picky{}
	outcomes := []string{"accepted", "deferred", "refused", "opted_out", "invalid", "better starts", "collisions"}
	missing := func(what string) bool { return seen[what] == 0 }
	check := func(t *rapid.T) {
		x := newRandom(t, b)
		sum, each := b.simulate(t, x.draft, x.own)
		x.holdsTotals(t, sum, each)
		x.holdsStarts(t, sum)
		again, _ := b.simulate(t, x.draft, x.own)
		if fmt.Sprint(sum) != fmt.Sprint(again) {
			t.Fatalf("a simulation has changed what the next one says: %+v, then %+v", sum, again)
		}
		done := b.start(t, x.draft, x.own.Over(push.Caps{}), quota.Policy(nil))
		if len(done) != len(each) {
			t.Fatalf("%d recipients were simulated, and %d started", len(each), len(done))
		}
		want := map[string]int{}
		for who, d := range done {
			outcome, reason, rules := d.Outcome()
			got := each[who]
			as := map[broadcast.Outcome]campaign.SimulatedOutcome{
				broadcast.OutcomeScheduled: campaign.SimulatedAccepted, broadcast.OutcomeRefused: campaign.SimulatedRefused,
				broadcast.OutcomeOptedOut: campaign.SimulatedOptedOut, broadcast.OutcomeInvalid: campaign.SimulatedInvalid,
			}[outcome]
			if d.Deferred() {
				as = campaign.SimulatedDeferred
			}
			if got.Outcome != as || got.Reason != reason || !got.SendAt.Equal(d.Decision.Push.SendAt) {
				t.Fatalf("%s was to be %+v, and is %s at %s: %s", who, got, as, d.Decision.Push.SendAt, reason)
			}
			seen[string(as)]++
			if as == campaign.SimulatedDeferred {
				rules = x.rulesInTheWay(who, d.Decision.Push.RequestedSendAt)
			}
			for _, name := range rules {
				want[name]++
			}
		}
		if !maps.Equal(sum.ByRule, want) {
			t.Fatalf("by rule %v, want %v", sum.ByRule, want)
		}
		seen["better starts"] += len(sum.BetterStarts)
		seen["collisions"] += len(sum.CollidesWith)
	}
	for range 10 { // one in some hundred runs has no deferred push
		if rapid.Check(t, check); !slices.ContainsFunc(outcomes, missing) {
			return
		}
	}
	t.Errorf("in ten runs: %v", seen)
}

// violations returns the conflicts of a recipient at a time.
func (x *random) violations(who string, at time.Time) []quota.Violation {
	var line quota.Timeline
	for i := range x.held[who] {
		line = line.Insert(booking.Of(&x.held[who][i]))
	}
	return x.terms.For(x.people[who].Person, quota.Kind{Channel: x.draft.Channel, Category: x.draft.Category}).Violations(line, at)
}

func (x *random) rulesInTheWay(who string, at time.Time) (names []string) {
	for _, v := range x.violations(who, at) {
		names = append(names, v.Rule.Name)
	}
	return names
}

// asked returns the requested send time of a recipient.
func (x *random) asked(who string) time.Time {
	of := booking.Standing{Terms: x.terms, Person: x.people[who]}
	d, err := campaign.NewPlanner(x.pushes, x.draft, plain{}, time.Now()).Plan(broadcast.AudienceLine{Recipient: who}, of, nil)
	if err != nil {
		panic(err)
	}
	return d.Push.SendAt
}

// holdsTotals compares the totals with the recipients.
func (x *random) holdsTotals(t *rapid.T, sum *campaign.Simulation, each map[string]campaign.Simulated) {
	of, delays, collisions := map[campaign.SimulatedOutcome]int{}, make([]int, 7), map[uuid.UUID]int{}
	for who, one := range each {
		of[one.Outcome]++
		if one.Outcome == campaign.SimulatedDeferred {
			by := one.SendAt.Sub(x.asked(who)).Seconds()
			n := slices.IndexFunc([]float64{60, 300, 900, 3600, 14400, 86400}, func(most float64) bool { return by <= most })
			if n < 0 {
				n = 6
			}
			delays[n]++
		}
		if one.Outcome == campaign.SimulatedDeferred || one.Outcome == campaign.SimulatedRefused && one.Reason != "tenant-cap-exceeded" {
			ids := map[uuid.UUID]bool{}
			for _, v := range x.violations(who, x.asked(who)) {
				for _, c := range v.Conflicts {
					ids[x.held[who][slices.IndexFunc(x.held[who], func(p push.Push) bool { return p.ID == c.ID })].Campaign] = true
				}
			}
			for id := range ids {
				if id != uuid.Nil {
					collisions[id]++
				}
			}
		}
	}
	got := map[campaign.SimulatedOutcome]int{"accepted": sum.Accepted, "deferred": sum.Deferred, "refused": sum.Refused, "opted_out": sum.OptedOut, "invalid": sum.Invalid}
	maps.DeleteFunc(got, func(_ campaign.SimulatedOutcome, n int) bool { return n == 0 })
	if !maps.Equal(got, of) || sum.Recipients != len(each) || sum.Recipients != int(x.draft.Size) {
		t.Fatalf("%+v, want %v", sum, of)
	}
	for i, d := range sum.Delays {
		if d.Recipients != delays[i] {
			t.Fatalf("delays %v, want %v", sum.Delays, delays)
		}
	}
	if len(sum.CollidesWith) != len(collisions) {
		t.Fatalf("collides with %v, want %v", sum.CollidesWith, collisions)
	}
	for i, c := range sum.CollidesWith {
		if c.Recipients != collisions[c.Campaign] || c.Name != x.others[c.Campaign] || i > 0 && c.Recipients > sum.CollidesWith[i-1].Recipients {
			t.Fatalf("collides with %v, want %v", sum.CollidesWith, collisions)
		}
	}
}

// holdsStarts simulates the campaign at one of the better starts, and at another quarter of an hour.
func (x *random) holdsStarts(t *rapid.T, sum *campaign.Simulation) {
	at := func(start time.Time) int {
		x.exec(t, `UPDATE campaigns SET send_at = $2, local_time = NULL WHERE id = $1`, [16]byte(x.draft.ID), start)
		other, err := x.Simulate(t.Context(), x.draft.Tenant, x.draft.ID, x.own, nil)
		if _, late := errors.AsType[invalid.FieldErrors](err); late { // it is after latest
			return 0
		}
		if err != nil {
			t.Fatal(err)
		}
		return other.Accepted
	}
	defer func() {
		before := []*time.Time{nil, nil}
		if !x.draft.SendAt.IsZero() {
			before[0] = &x.draft.SendAt
		} else {
			before[1] = &x.draft.LocalTime
		}
		x.exec(t, `UPDATE campaigns SET send_at = $2, local_time = $3 WHERE id = $1`, [16]byte(x.draft.ID), before[0], before[1])
	}()
	better := sum.BetterStarts
	if len(better) > 5 || !slices.IsSortedFunc(better, func(a, b booking.Start) int {
		return cmp.Or(cmp.Compare(b.Accepted, a.Accepted), a.At.Compare(b.At))
	}) {
		t.Fatalf("better starts %v", better)
	}
	if len(better) > 0 {
		s := rapid.SampledFrom(better).Draw(t, "better start")
		if n := at(s.At); n != s.Accepted || n <= sum.Accepted || !s.At.Truncate(booking.StartStep).Equal(s.At) {
			t.Fatalf("at %s %d would be accepted, not %d; at the time of the campaign %d", s.At, n, s.Accepted, sum.Accepted)
		}
	}
	first := x.draft.SendAt
	if first.IsZero() {
		first = x.draft.LocalTime.Add(-14 * time.Hour)
	}
	other := first.Add(booking.StartStep - 1).Truncate(booking.StartStep).Add(time.Duration(rapid.IntRange(0, 95).Draw(t, "other start")) * booking.StartStep)
	if slices.ContainsFunc(better, func(s booking.Start) bool { return s.At.Equal(other) }) {
		return
	}
	most := sum.Accepted
	if len(better) == 5 {
		most = better[4].Accepted
	}
	if n := at(other); n > most {
		t.Fatalf("at %s %d would be accepted, which is better than %v", other, n, better)
	}
}

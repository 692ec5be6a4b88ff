package campaign_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// random is a random draft of a tenant with random rules, and everything around it.
type random struct {
	*bundle
	draft  push.Campaign
	terms  booking.Terms
	people map[string]booking.Person
	held   map[string][]push.Push
	others map[uuid.UUID]string // names of campaigns that were started before
	own    push.OwnCaps
}

func newRandom(t *rapid.T, b *bundle) *random {
	w := policytest.Ahead(time.Now()).Draw(t, "world")
	document := w.Documents(0).Draw(t, "document")
	terms, err := document.Compile(policytest.Channels)
	if err != nil {
		t.Skip("always quiet")
	}
	x := &random{bundle: b, terms: terms, people: map[string]booking.Person{}, held: map[string][]push.Push{}, others: map[uuid.UUID]string{}}
	tenant := b.newTenant(t)
	for _, name := range []string{"first", "second"} {
		other := b.drafted(t, push.Campaign{Tenant: tenant, Name: name})
		b.exec(t, `UPDATE campaigns SET status = 'running', started_at = clock_timestamp() WHERE id = $1`, [16]byte(other.ID))
		x.others[other.ID] = name
	}
	var audience []push.CampaignLine
	begin := w.Moments().Draw(t, "begin")
	for i := range rapid.IntRange(1, 12).Draw(t, "recipients") {
		who := fmt.Sprint("user-", i)
		audience = append(audience, push.CampaignLine{Recipient: who})
		x.books(t, tenant, who, begin)
	}
	for _, line := range audience {
		x.person(t, w, tenant, line.Recipient)
	}
	b.has(t, tenant, document)
	some := func(n, most int, what string) *int {
		if rapid.IntRange(0, n).Draw(t, "has a cap") > 0 {
			return nil
		}
		return new(rapid.IntRange(1, most).Draw(t, what))
	}
	x.own = push.OwnCaps{PendingPushes: some(3, 30, "pending pushes"), RecipientsPerDay: some(3, 6, "recipients per day")}
	kind := policytest.Kinds().Draw(t, "kind")
	c := push.Campaign{
		Tenant: tenant, Name: "sale", Channel: kind.Channel, Category: kind.Category, OnConflict: rapid.SampledFrom([]string{"reject", "defer"}).Draw(t, "on conflict"),
		Spread: time.Duration(rapid.SampledFrom([]int{0, 60, 7200, 86400}).Draw(t, "spread")) * time.Second,
	}
	if rapid.IntRange(0, 2).Draw(t, "local") == 0 {
		c.LocalTime = begin.Truncate(time.Second)
	} else {
		c.SendAt = begin.Truncate(time.Second)
	}
	if c.OnConflict == "defer" && rapid.Bool().Draw(t, "until") {
		c.Latest = begin.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "latest")) * time.Hour).Truncate(time.Second)
	}
	x.draft = b.drafted(t, c, audience...)
	return x
}

// person describes a recipient, or not.
func (x *random) person(t *rapid.T, w policytest.World, tenant uuid.UUID, who string) {
	if rapid.Bool().Draw(t, "unknown") {
		return
	}
	p := booking.Person{Person: w.People().Draw(t, "person")}
	if rapid.IntRange(0, 5).Draw(t, "opts out") == 0 {
		p.OptOuts.Categories = []string{rapid.SampledFrom(policytest.Categories).Draw(t, "of")}
	}
	x.people[who] = p
	x.describes(t, tenant, who, p)
}

// books books pushes for a recipient around a time, some of other campaigns.
func (x *random) books(t *rapid.T, tenant uuid.UUID, who string, around time.Time) {
	for range rapid.IntRange(0, 5).Draw(t, "held") {
		kind := policytest.Kinds().Draw(t, "kind of booking")
		p := push.Push{
			Tenant: tenant, Recipient: who, Channel: kind.Channel, Category: kind.Category,
			SendAt: around.Add(time.Duration(rapid.IntRange(-3000, 3000).Draw(t, "minutes")) * time.Minute).Truncate(time.Second),
		}
		if rapid.Bool().Draw(t, "of a campaign") {
			p.Campaign = rapid.SampledFrom(slices.SortedFunc(maps.Keys(x.others), func(a, b uuid.UUID) int { return cmp.Compare(x.others[a], x.others[b]) })).Draw(t, "which")
		}
		p.ID = push.NewID(p.SendAt, push.RecipientKey(tenant, who))
		x.held[who] = append(x.held[who], p)
	}
	x.holds(t, x.held[who]...)
}

// TestSimulate_EqualsStart: with nothing in between, a start does what a simulation said, recipient by recipient, and the sums are
// those of the recipients.
func TestSimulate_EqualsStart(t *testing.T) {
	t.Parallel()
	b, seen := setup(t, store.Config{Lanes: 4}), map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
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
			as := map[push.CampaignOutcome]campaign.SimulatedOutcome{
				push.OutcomeScheduled: campaign.SimulatedAccepted, push.OutcomeRefused: campaign.SimulatedRefused,
				push.OutcomeOptedOut: campaign.SimulatedOptedOut, push.OutcomeInvalid: campaign.SimulatedInvalid,
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
	})
	t.Logf("%v", seen)
	for _, what := range []string{"accepted", "deferred", "refused", "opted_out", "invalid", "better starts", "collisions"} {
		if seen[what] < 10 {
			t.Errorf("%s: only %d", what, seen[what])
		}
	}
}

// violations are what is in the way of a recipient at a time.
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

// asked is the time that a recipient is to be sent something.
func (x *random) asked(who string) time.Time {
	of := booking.Standing{Terms: x.terms, Person: x.people[who]}
	d, err := campaign.NewPlanner(x.pushes, x.draft, plain{}, time.Now()).Plan(push.CampaignLine{Recipient: who}, of, nil)
	if err != nil {
		panic(err)
	}
	return d.Push.SendAt
}

// holdsTotals compares the sums with the recipients.
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
		if _, late := errors.AsType[invalid.FieldErrors](err); late { // it is behind latest
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

// TestSimulate_States: only a draft that has an audience is simulated, and only as long as it is one.
func TestSimulate_States(t *testing.T) {
	t.Parallel()
	b := setup(t, store.Config{})
	tenant := b.newTenant(t)
	c := b.drafted(t, push.Campaign{Tenant: tenant}, push.CampaignLine{Recipient: "anna"})
	simulate := func(tenant, id uuid.UUID, each func([]campaign.Simulated) error) error {
		_, err := b.Simulate(t.Context(), tenant, id, push.OwnCaps{}, each)
		return err
	}
	empty := b.drafted(t, push.Campaign{Tenant: tenant})
	state := func(err error, detail string) {
		t.Helper()
		wrong, ok := errors.AsType[*push.CampaignStateError](err)
		if !ok || wrong.Detail != detail {
			t.Errorf("%v, want %s", err, detail)
		}
	}
	state(simulate(tenant, empty.ID, nil), "the campaign has no audience; upload one first")
	if err := simulate(b.newTenant(t), c.ID, nil); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("a stranger's campaign: %v", err)
	}
	state(simulate(tenant, c.ID, func([]campaign.Simulated) error {
		b.exec(t, `UPDATE campaigns SET audience_id = gen_random_uuid(), updated_at = clock_timestamp() WHERE id = $1`, [16]byte(c.ID))
		return nil
	}), "the campaign was changed while it was simulated; simulate it again")
	b.exec(t, `UPDATE campaigns SET audience_id = $2 WHERE id = $1`, [16]byte(c.ID), [16]byte(c.Audience))
	state(simulate(tenant, c.ID, func([]campaign.Simulated) error {
		b.exec(t, `UPDATE campaigns SET status = 'starting' WHERE id = $1`, [16]byte(c.ID))
		return nil
	}), "the campaign is starting; it can only be simulated while it is a draft")
	state(simulate(tenant, c.ID, nil), "the campaign is starting; it can only be simulated while it is a draft")
	past := b.drafted(t, push.Campaign{Tenant: tenant, SendAt: time.Now().Add(-time.Hour)}, push.CampaignLine{Recipient: "anna"})
	if wrong, ok := errors.AsType[invalid.FieldErrors](simulate(tenant, past.ID, nil)); !ok || len(wrong) != 1 || wrong[0].Field != "send_at" {
		t.Errorf("a time that is over: %v", wrong)
	}
	gone := errors.New("the caller went away")
	if err := simulate(tenant, b.drafted(t, push.Campaign{Tenant: tenant}, push.CampaignLine{Recipient: "anna"}).ID, func([]campaign.Simulated) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// TestSimulate_Now: a campaign without a time is simulated as if it were started now, by Postgres' clock.
func TestSimulate_Now(t *testing.T) {
	t.Parallel()
	b := setup(t, store.Config{}, quota.Rule{Name: "per-day", Limit: 1, Window: 24 * time.Hour})
	tenant := b.newTenant(t)
	b.holds(t, push.Push{Tenant: tenant, Recipient: "bert", Channel: "sms", SendAt: time.Now().Add(time.Hour).Truncate(time.Second)})
	b.parse = shown{"name"}
	b.drafted(t, push.Campaign{Tenant: tenant})
	c := b.drafted(t, push.Campaign{Tenant: tenant}, push.CampaignLine{Recipient: "anna"}, push.CampaignLine{Recipient: "bert"}, push.CampaignLine{Recipient: "carl"})
	b.exec(t, `UPDATE campaign_recipients SET variables = $1 WHERE recipient <> 'carl'`, json.RawMessage(`{"name":"x"}`))
	b.exec(t, `UPDATE campaign_recipients SET recipient = '' WHERE recipient = 'dora'`)
	sum, each := b.simulate(t, c, push.OwnCaps{})
	if since := time.Since(each["anna"].SendAt); each["anna"].Outcome != "accepted" || since < 0 || since > time.Minute {
		t.Errorf("%+v", each["anna"])
	}
	if each["bert"].Outcome != "refused" || each["bert"].Reason != "quota-exceeded" || !each["bert"].SendAt.IsZero() {
		t.Errorf("%+v", each["bert"])
	}
	if each["carl"].Outcome != "invalid" || each["carl"].Reason != "message.title: the variable name is not known" {
		t.Errorf("%+v", each["carl"])
	}
	if sum.ByRule["per-day"] != 1 || len(sum.CollidesWith) > 0 || len(sum.BetterStarts) > 0 {
		t.Errorf("%+v", sum)
	}
}

// TestSimulate_EqualsWorkers: what workers book, under the caps that they keep, is what a simulation said.
func TestSimulate_EqualsWorkers(t *testing.T) {
	t.Parallel()
	const recipients = 1300
	b := setupRunning(t, quota.Rule{Name: "hour", Limit: 1, Window: time.Hour})
	b.caps = push.Caps{PendingPushes: 1400, RecipientsPerDay: 700}
	w := b.worker()
	at := time.Now().Add(72 * time.Hour).Truncate(24 * time.Hour).Add(23 * time.Hour)
	first := b.draft(400, campaign.Change{SendAt: &at})
	b.act(first, push.CampaignStart)
	b.until(w, first, push.CampaignRunning)
	b.exec(`UPDATE campaigns SET worker = gen_random_uuid(), lease_until = 'infinity' WHERE id = $1`, [16]byte(first.ID)) // no worker looks at it
	deferred := "defer"
	c := b.draft(recipients, campaign.Change{SendAt: new(at.Add(10 * time.Minute)), Spread: new(100 * time.Minute), OnConflict: &deferred})
	simulator := campaign.NewSimulator(b.Service, b.service(b.store), campaign.SimulatorConfig{Policy: b.policy, Caps: b.caps, Parse: campaign.Parse})
	each := map[string]string{}
	sum, err := simulator.Simulate(t.Context(), b.tenant, c.ID, push.OwnCaps{}, func(all []campaign.Simulated) error {
		for _, one := range all {
			at := ""
			if !one.SendAt.IsZero() {
				at = one.SendAt.UTC().Format(time.RFC3339)
			}
			each[one.Recipient] = string(one.Outcome) + " " + at + " " + one.Reason
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Recipients != recipients || sum.Accepted == 0 || sum.Deferred == 0 || sum.ByRule["recipients_per_day"]+sum.ByRule["pending_pushes"] == 0 || sum.CollidesWith[0].Campaign != first.ID {
		t.Errorf("%+v", sum)
	}
	b.act(c, push.CampaignStart)
	b.until(w, c, push.CampaignRunning)
	booked := testenv.Query[string](t, b.url, `
		SELECT string_agg(r.recipient || '=' || concat_ws(' ', CASE WHEN r.outcome <> 'booked' THEN r.outcome WHEN p.send_at > p.requested_send_at THEN 'deferred' ELSE 'accepted' END,
			coalesce(to_char(p.send_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''), r.reason), ',')
		FROM campaign_recipients r LEFT JOIN pushes p ON p.id = r.push_id WHERE r.campaign_id = $1`, [16]byte(c.ID))
	n := 0
	for one := range strings.SplitSeq(booked, ",") {
		who, got, _ := strings.Cut(one, "=")
		if n++; each[who] != got {
			t.Fatalf("%s was to be %s, and is %s", who, each[who], got)
		}
	}
	if n != recipients {
		t.Errorf("%d recipients", n)
	}
}

// TestSimulate_Crowd: all that a recipient with very many bookings has counts.
func TestSimulate_Crowd(t *testing.T) {
	t.Parallel()
	b := setup(t, store.Config{}, quota.Rule{Name: "many", Limit: 1500, Window: 24 * time.Hour}, quota.Rule{Name: "few", Limit: 1, Window: time.Second})
	tenant, at := b.newTenant(t), time.Now().Add(48*time.Hour).Truncate(time.Hour)
	var held []push.Push
	for i := range 1500 {
		held = append(held, push.Push{Tenant: tenant, Recipient: "anna", Channel: "sms", SendAt: at.Add(time.Duration(-3*i-1) * time.Second)})
	}
	b.holds(t, held...)
	c := b.drafted(t, push.Campaign{Tenant: tenant, SendAt: at, OnConflict: "defer"}, push.CampaignLine{Recipient: "anna"}, push.CampaignLine{Recipient: "bert"})
	sum, each := b.simulate(t, c, push.OwnCaps{})
	if free := held[1499].SendAt.Add(24 * time.Hour); each["anna"].Outcome != "deferred" || !each["anna"].SendAt.Equal(free) || each["bert"].Outcome != "accepted" || sum.ByRule["many"] != 1 {
		t.Errorf("%+v, want anna at %s; %+v", each, free, sum)
	}
}

package schedule_test

import (
	"context"
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
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// termsModel is one recipient of a tenant with changing policies in two API processes, and the oracle's view of it.
type termsModel struct {
	policytest.Scenario
	services []*schedule.Service
	caches   []*quota.Cache
	execute  func(sql string, args ...any) error
	tenant   uuid.UUID
	optOuts  booking.OptOuts
	seen     map[string]int
}

// fileDocument is the policy of tenants without a policy of their own.
func fileDocument() policy.Document {
	limit := 2
	return policy.Document{Rules: []policy.Rule{{Name: "rule-0", Limit: &limit, Window: "2h"}}}
}

func newTermsModel(t *rapid.T, execute func(string, ...any) error, bundles []*bundle, services []*schedule.Service, seen map[string]int) *termsModel {
	m := &termsModel{Scenario: policytest.Scenario{World: policytest.Ahead(began).Draw(t, "world")}, services: services, execute: execute, seen: seen, tenant: uuid.New()}
	for _, b := range bundles {
		m.caches = append(m.caches, b.cache)
	}
	m.exec(t, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, m.tenant, m.tenant.String())
	m.Doc = fileDocument()
	if rapid.IntRange(0, 4).Draw(t, "own policy") > 0 {
		m.changePolicy(t)
	}
	return m
}

func (m *termsModel) exec(t *rapid.T, sql string, args ...any) {
	t.Helper()
	if err := m.execute(sql, args...); err != nil {
		t.Fatal(err)
	}
}

// changePolicy stores another document, or returns to the operator's file.
func (m *termsModel) changePolicy(t *rapid.T) {
	doc, stored := fileDocument(), []byte(nil)
	if rapid.IntRange(0, 5).Draw(t, "own") > 0 {
		doc = m.Documents(rapid.IntRange(0, 1).Draw(t, "least limit")).Draw(t, "document")
		if _, err := doc.Compile(policytest.Channels); err != nil {
			return // always quiet
		}
		stored, _ = json.Marshal(doc)
	}
	m.Doc = doc
	m.exec(t, `WITH v AS (UPDATE tenants SET policy_version = policy_version + 1 WHERE id = $1 RETURNING policy_version)
		INSERT INTO policies (tenant_id, version, document) SELECT $1, policy_version, $2::json FROM v`, m.tenant, stored)
	m.seen["policies"]++
}

// changePerson replaces the description of the recipient.
func (m *termsModel) changePerson(t *rapid.T) {
	m.Person = m.People().Draw(t, "person")
	some := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(string) bool { return rapid.IntRange(0, 5).Draw(t, "opts out") > 0 })
	}
	m.optOuts = booking.OptOuts{All: rapid.IntRange(0, 9).Draw(t, "opts out of all") == 0, Channels: some(policytest.Channels), Categories: some(policytest.Categories)}
	zone := ""
	if m.Person.Zone != nil {
		zone = m.Person.Zone.String()
	}
	limits := m.Person.Limits
	if limits == nil {
		limits = map[string]int{}
	}
	key := push.RecipientKey(m.tenant, "anna")
	m.exec(t, `UPDATE tenants SET described = true WHERE id = $1`, m.tenant)
	m.exec(t, `DELETE FROM recipients WHERE tenant_id = $1`, m.tenant)
	m.exec(t, `INSERT INTO recipients (shard, tenant_id, recipient_key, recipient, time_zone, limits, opt_out_all, opt_out_channels, opt_out_categories)
		VALUES ($1, $2, $3, 'anna', $4, $5, $6, $7, $8)`, key&255, m.tenant, key, zone, limits, m.optOuts.All, m.optOuts.Channels, m.optOuts.Categories)
}

func (m *termsModel) service(t *rapid.T) *schedule.Service {
	return rapid.SampledFrom(m.services).Draw(t, "service")
}

// ask draws a request, and passes it to the oracle.
func (m *termsModel) ask(t *rapid.T) schedule.Request {
	m.Kind = policytest.Kinds().Draw(t, "kind")
	return schedule.Request{
		Content: push.Content{Recipient: "anna", Channel: m.Kind.Channel, Category: m.Kind.Category, Message: json.RawMessage(`{"title":"hello"}`)},
		SendAt:  m.Moments().Draw(t, "at"),
	}
}

// wantRefusal compares the answer to a request for a blocked time with the oracle.
func (m *termsModel) wantRefusal(t *rapid.T, at time.Time, err error) {
	t.Helper()
	var refusal *schedule.Refusal
	if !errors.As(err, &refusal) || !refusal.SendAt.Equal(at) {
		t.Fatalf("%v of %v at %s: %v, though the oracle finds %v in the way", m, m.Kind, at.In(m.Zone), err, m.InTheWay(at, false))
	}
	m.wantDecision(t, at, refusal.Decision, true)
	m.seen["refused"]++
}

// wantDecision compares a decision with the oracle. offers reports whether the decision offers other times: it offers
// none to a recipient who opted out.
func (m *termsModel) wantDecision(t *rapid.T, at time.Time, d quota.Decision, offers bool) {
	t.Helper()
	var broken []string
	for _, v := range d.Violations {
		broken = append(broken, v.Rule.Name)
		var conflicts, want []uuid.UUID
		for _, b := range v.Conflicts {
			conflicts = append(conflicts, b.ID)
		}
		if i := slices.IndexFunc(m.Doc.Rules, func(r policy.Rule) bool { return r.Name == v.Rule.Name }); i >= 0 {
			want = m.Conflicts(m.Doc.Rules[i], at)
		}
		slices.SortFunc(conflicts, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		if !slices.Equal(conflicts, want) && !slices.ContainsFunc(want, func(id uuid.UUID) bool { return id.Version() != 7 }) { // the ids of refused members are unknown
			t.Fatalf("%v of %v at %s: %s conflicts with %v, want %v", m, m.Kind, at.In(m.Zone), v.Rule.Name, conflicts, want)
		}
	}
	if want := m.InTheWay(at, false); !slices.Equal(broken, want) {
		t.Fatalf("%v of %v at %s: %v is in the way, the oracle says %v", m, m.Kind, at.In(m.Zone), broken, want)
	}
	if !offers {
		if !d.Next.IsZero() || !d.Previous.IsZero() {
			t.Fatalf("%v of %v at %s: %s and %s are offered to one who opted out", m, m.Kind, at.In(m.Zone), d.Previous, d.Next)
		}
		return
	}
	if next, ok := m.Next(at); ok && !d.Next.Equal(next) {
		t.Fatalf("%v of %v at %s: next %s, want %s", m, m.Kind, at.In(m.Zone), d.Next.In(m.Zone), next.In(m.Zone))
	}
	if previous, ok := m.Previous(at); ok && previous.After(began) && !d.Previous.Equal(previous) {
		t.Fatalf("%v of %v at %s: previous %s, want %s", m, m.Kind, at.In(m.Zone), d.Previous.In(m.Zone), previous.In(m.Zone))
	}
}

// wantUnwanted reports whether the recipient has opted out of the push. Then err must be that refusal.
func (m *termsModel) wantUnwanted(t *rapid.T, err error) bool {
	t.Helper()
	var unwanted *schedule.OptedOut
	against := m.optOuts.Of(m.Kind)
	if got := errors.As(err, &unwanted); got != against.Any() || got && unwanted.All != against.All {
		t.Fatalf("%v, of %v to one who opted out of %+v", err, m.Kind, m.optOuts)
	}
	if against.Any() {
		m.seen["opted out"]++
	}
	return against.Any()
}

func (m *termsModel) wantUsage(t *rapid.T, at time.Time, usage []quota.Usage) {
	t.Helper()
	if !m.Sees(at) {
		return
	}
	for _, u := range usage {
		r := m.Doc.Rules[slices.IndexFunc(m.Doc.Rules, func(r policy.Rule) bool { return r.Name == u.Rule.Name })]
		if remaining, used := m.Remaining(r, at); u.Remaining != remaining || u.Used != used {
			t.Fatalf("%v of %v at %s: usage %+v, the oracle says %d and %d", m, m.Kind, at.In(m.Zone), u, used, remaining)
		}
		m.seen["usage"]++
	}
}

// hold records a booking.
func (m *termsModel) hold(id uuid.UUID, at time.Time) {
	m.Bookings = append(m.Bookings, quota.Booking{ID: id, At: at, Kind: m.Kind})
}

func (m *termsModel) release(id uuid.UUID) {
	m.Bookings = slices.DeleteFunc(slices.Clone(m.Bookings), func(b quota.Booking) bool { return b.ID == id })
}

// pushOf returns the push of a member that was booked.
func pushOf(m schedule.Member) (p push.Push) {
	if m.Decision != nil {
		p = m.Decision.Push
	}
	return p
}

// wantPlace returns the expected send time of a push, or false if it is refused, after comparing the refusal with the
// oracle. It may be moved up to latest; zero: only out of quiet hours that defer.
func (m *termsModel) wantPlace(t *rapid.T, at, latest time.Time, got push.Push, err error) (time.Time, bool) {
	t.Helper()
	if m.wantUnwanted(t, err) {
		return at, false
	}
	want, found := at, m.Free(at)
	if !found && (!latest.IsZero() || m.Defers(at)) {
		want, found = m.Next(at)
		if latest.IsZero() && !found && err == nil {
			return got.SendAt, true // beyond what the oracle sees
		}
		found = found && (latest.IsZero() || !want.After(latest))
	}
	if !found {
		m.wantRefusal(t, at, err)
		return at, false
	}
	if err != nil || !got.SendAt.Equal(want) || !got.RequestedSendAt.Equal(at) {
		t.Fatalf("%v of %v at %s: booked at %s, %v; want %s", m, m.Kind, at.In(m.Zone), got.SendAt.In(m.Zone), err, want.In(m.Zone))
	}
	if m.seen["booked"]++; !want.Equal(at) {
		m.seen["moved"]++
	}
	return want, true
}

func (m *termsModel) submit(t *rapid.T) {
	r, latest := m.ask(t), time.Time{}
	if r.Defer = rapid.IntRange(0, 3).Draw(t, "defer") == 0; r.Defer {
		latest = r.SendAt.Add(10 * 24 * time.Hour)
		r.Latest = latest
	}
	o := schedule.Options{ValidateOnly: rapid.IntRange(0, 5).Draw(t, "only validate") == 0}
	res, err := m.service(t).Submit(context.Background(), m.tenant, r, o)
	at, booked := m.wantPlace(t, r.SendAt, latest, res.Push, err)
	if !booked {
		return
	}
	m.hold(res.Push.ID, at)
	m.wantUsage(t, at, res.Usage)
	if o.ValidateOnly {
		m.release(res.Push.ID)
	}
}

func (m *termsModel) submitBatch(t *rapid.T) {
	atomic, before, failed := rapid.Bool().Draw(t, "atomic"), m.Bookings, false
	members := make([]schedule.Member, rapid.IntRange(1, 4).Draw(t, "members"))
	kinds := make([]quota.Kind, len(members))
	for i := range members {
		members[i].Request = m.ask(t)
		kinds[i] = m.Kind
	}
	if err := m.service(t).SubmitBatch(context.Background(), m.tenant, members, atomic, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	for i, one := range members {
		m.Kind = kinds[i]
		if at := one.Request.SendAt; atomic && errors.Is(one.Err, schedule.ErrOthersRefused) { // its id and its place are unknown
			if !m.Free(at) {
				next, ok := m.Next(at)
				if at = next; !ok {
					at = began.Add(360 * 24 * time.Hour)
				}
			}
			m.hold(uuid.New(), at)
		} else if at, booked := m.wantPlace(t, at, time.Time{}, pushOf(one), one.Err); booked {
			m.hold(one.Decision.Push.ID, at)
		} else {
			failed = true
		}
	}
	if atomic && failed {
		m.Bookings = before
	}
	m.seen["batches"]++
}

// some draws one of the pushes that hold a place, and passes it to the oracle.
func (m *termsModel) some(t *rapid.T) (b quota.Booking, ok bool) {
	if len(m.Bookings) == 0 {
		return b, false
	}
	b = m.Bookings[rapid.IntRange(0, len(m.Bookings)-1).Draw(t, "push")]
	m.Kind = b.Kind
	return b, true
}

func (m *termsModel) cancel(t *rapid.T) {
	if b, ok := m.some(t); ok {
		if p, err := m.service(t).Cancel(context.Background(), m.tenant, b.ID); err != nil || p.Status != push.Canceled {
			t.Fatalf("cancel: %+v, %v", p, err)
		}
		m.release(b.ID)
	}
}

func (m *termsModel) move(t *rapid.T) {
	b, ok := m.some(t)
	if !ok {
		return
	}
	to := m.Moments().Draw(t, "to")
	res, err := m.service(t).Reschedule(context.Background(), m.tenant, b.ID, schedule.When{SendAt: to}, schedule.Options{})
	m.release(b.ID)
	at, booked := m.wantPlace(t, to, time.Time{}, res.Push, err)
	if !booked {
		at = b.At
	}
	m.hold(b.ID, at)
	if booked {
		m.wantUsage(t, at, res.Usage)
	}
	m.seen["moves"]++
}

func (m *termsModel) readBack(t *rapid.T) {
	r, anna := m.ask(t), quota.Recipient{Tenant: m.tenant, ID: "anna"}
	against := m.optOuts.Of(m.Kind).Any()
	usage, answer, err := m.service(t).Quota(context.Background(), anna, m.Kind, r.SendAt)
	if err != nil || answer.Allowed() != (m.Free(r.SendAt) && !against) {
		t.Fatalf("%v of %v at %s: %+v, %v", m, m.Kind, r.SendAt.In(m.Zone), answer, err)
	}
	m.wantUsage(t, r.SendAt, usage)
	checked, err := m.service(t).Check(context.Background(), m.tenant, r)
	if err != nil || checked.OptedOut.Any() != against {
		t.Fatal(checked, err)
	}
	m.wantDecision(t, r.SendAt, checked.Decision, !against)

	until := r.SendAt.Add(30 * time.Hour)
	slots, err := m.service(t).Slots(context.Background(), anna, m.Kind, r.SendAt, until)
	if err != nil {
		t.Fatal(err)
	}
	for at := r.SendAt; at.Before(until); at = at.Add(policytest.Grain) {
		if covered := slices.ContainsFunc(slots.Blocked, func(i quota.Interval) bool { return i.Covers(at) }); covered == m.Free(at) {
			t.Fatalf("%v of %v: blocked at %s: %v", m, m.Kind, at.In(m.Zone), covered)
		}
	}
	held := map[uuid.UUID]time.Time{}
	for _, b := range m.Bookings {
		if !b.At.Before(r.SendAt) && !b.At.After(until) {
			held[b.ID] = b.At
		}
	}
	for _, h := range slots.Bookings {
		if !held[h.ID].Equal(h.At) {
			t.Fatalf("%v: slots show %+v", m, h)
		}
		delete(held, h.ID)
	}
	if len(held) > 0 {
		t.Fatalf("%v: slots from %s do not show %v, but %+v", m, r.SendAt, held, slots)
	}
	m.seen["looks"]++
}

// readFree compares the free times with the answers to submits that only validate: at the ends of free spans, and at
// times of the oracle. Then it does the same for a move of one of the pushes.
func (m *termsModel) readFree(t *rapid.T) {
	r := m.ask(t)
	from, until := r.SendAt, r.SendAt.Add(30*time.Hour)
	m.wantFree(t, from, until, uuid.Nil, func(at time.Time) (push.Push, error) {
		r.SendAt = at
		res, err := m.service(t).Submit(context.Background(), m.tenant, r, schedule.Options{ValidateOnly: true})
		return res.Push, err
	})
	if b, ok := m.some(t); ok {
		m.wantFree(t, b.At.Add(-2*time.Hour), b.At.Add(2*time.Hour), b.ID, func(at time.Time) (push.Push, error) {
			res, err := m.service(t).Reschedule(context.Background(), m.tenant, b.ID, schedule.When{SendAt: at}, schedule.Options{ValidateOnly: true})
			return res.Push, err
		})
	}
}

// wantFree checks that the free times accept a push, and that no other times do.
func (m *termsModel) wantFree(t *rapid.T, from, until time.Time, without uuid.UUID, try func(at time.Time) (push.Push, error)) {
	t.Helper()
	a, err := m.service(t).Availability(context.Background(), quota.Recipient{Tenant: m.tenant, ID: "anna"}, m.Kind, from, until, without)
	if err != nil || !a.Next.IsZero() {
		t.Fatal(a, err)
	}
	times := []time.Time{from, until.Add(-time.Second)}
	for range 2 {
		times = append(times, from.Add(time.Duration(rapid.IntRange(0, int(until.Sub(from)/policytest.Grain)-1).Draw(t, "grain"))*policytest.Grain))
	}
	if n := len(a.Free); n > 0 {
		span := a.Free[rapid.IntRange(0, n-1).Draw(t, "span")]
		times = append(times, span.From.Add(-time.Second), span.From, span.Until.Add(-time.Second), span.Until)
	}
	for _, at := range times {
		if at.Before(from) || !at.Before(until) {
			continue
		}
		free := slices.ContainsFunc(a.Free, func(s quota.Span) bool { return s.Has(at) })
		p, err := try(at)
		if accepted := err == nil && p.SendAt.Equal(at); accepted != free {
			t.Fatalf("%v of %v at %s, without %s: free %v, but the answer is %s, %v", m, m.Kind, at.In(m.Zone), without, free, p.SendAt.In(m.Zone), err)
		}
		m.seen[fmt.Sprintf("free %v", free)]++
	}
}

// forget loses the cache.
func (m *termsModel) forget(*rapid.T) {
	m.caches[0].Forget(quota.Recipient{Tenant: m.tenant, ID: "anna"})
}

// TestService_TermsModel drives a recipient through random submits, batches, cancels and moves, at two API processes,
// while the tenant's policy and the recipient's description change. Every answer matches the oracle, by the policy and
// the description of the moment.
func TestService_TermsModel(t *testing.T) {
	t.Parallel()
	with := ownServers(t)
	file, err := fileDocument().Compile(policytest.Channels)
	if err != nil {
		t.Fatal(err)
	}
	bundles := []*bundle{with.open(t, nil), with.beside(t).open(t, nil)}
	services := make([]*schedule.Service, len(bundles))
	for i, b := range bundles {
		services[i] = schedule.New(b.store, b.cache, b.queue, b.metrics, func() time.Time { return began }, schedule.Config{
			Policy: file, Channels: policytest.Channels, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: 90 * time.Second,
		})
	}
	db, seen := testenv.Connect(t, with.postgres), map[string]int{}
	execute := func(sql string, args ...any) error {
		_, err := db.Exec(context.Background(), sql, args...)
		return err
	}
	drive := func(t *rapid.T) {
		m := newTermsModel(t, execute, bundles, services, seen)
		t.Repeat(map[string]func(*rapid.T){
			"submit": m.submit, "submit again": m.submit, "submit once more": m.submit, "and more": m.submit, "submit a batch": m.submitBatch,
			"cancel": m.cancel, "move": m.move, "read": m.readBack, "free times": m.readFree, "forget": m.forget, "change the policy": m.changePolicy, "change the person": m.changePerson,
		})
	}
	kinds := []string{"booked", "refused", "moved", "opted out", "usage", "batches", "moves", "looks", "free true", "free false", "policies", "cache cold", "cache free", "cache blocked"}
	rare := func(kind string) bool {
		if state, ok := strings.CutPrefix(kind, "cache "); ok {
			seen[kind] = bundles[0].metrics.of("cache "+state) + bundles[1].metrics.of("cache "+state)
		}
		return seen[kind] < 10
	}
	testenv.Enough(func() bool { return !slices.ContainsFunc(kinds, rare) }, func() { rapid.Check(t, drive) })
	findings, err := bundles[0].store.Audit(t.Context(), quota.Policy{{Name: "rule-0", Limit: 2, Window: 2 * time.Hour}}, time.Time{})
	if err != nil || len(findings) > 0 {
		t.Errorf("the audit found %+v, %v", findings, err)
	}
	t.Logf("%v", seen)
	for _, kind := range kinds {
		if rare(kind) {
			t.Errorf("%s: only %d of %v", kind, seen[kind], slices.Sorted(maps.Keys(seen)))
		}
	}
}

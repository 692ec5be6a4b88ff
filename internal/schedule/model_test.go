package schedule_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// model is one recipient in two bundles, and the oracle's view of it.
type model struct {
	bundles  []*bundle
	services []*schedule.Service // one in each bundle
	tenant   uuid.UUID
	policy   quota.Policy
	held     oracle
}

var policies = []quota.Policy{
	{{Name: "a", Limit: 1, Window: 7 * time.Second}},
	{{Name: "a", Limit: 2, Window: 10 * time.Second}},
	{{Name: "a", Limit: 1, Window: 3 * time.Second}, {Name: "b", Limit: 3, Window: 20 * time.Second}},
	{{Name: "a", Limit: 2, Window: 5 * time.Second}, {Name: "b", Limit: 4, Window: 25 * time.Second}, {Name: "c", Limit: 5, Window: 40 * time.Second}},
}

var moments = rapid.Map(rapid.IntRange(1, 90), func(n int) time.Duration { return time.Duration(n) * time.Second })

func newModel(t *rapid.T, bundles []*bundle) *model {
	m := &model{bundles: bundles, tenant: uuid.New(), policy: rapid.SampledFrom(policies).Draw(t, "policy"), held: oracle{}}
	for _, b := range bundles {
		m.services = append(m.services, b.service(m.policy))
	}
	return m
}

// bundle returns one of the two.
func (m *model) bundle(t *rapid.T) *schedule.Service {
	return rapid.SampledFrom(m.services).Draw(t, "service")
}

func (m *model) String() string {
	times := slices.SortedFunc(maps.Values(m.held), time.Time.Compare)
	s := fmt.Sprint(m.policy, " booked")
	for _, at := range times {
		s += fmt.Sprint(" ", at.Sub(began))
	}
	return s
}

// wantAnswer compares the answer to a request for a place with the oracle. held are the conflicting bookings.
func (m *model) wantAnswer(t *rapid.T, held oracle, at time.Time, err error) (allowed bool) {
	t.Helper()
	if held.free(m.policy, at) {
		if err != nil {
			t.Fatalf("%v at %s: %v, though it is free", m, at.Sub(began), err)
		}
		return true
	}
	var refusal *schedule.Refusal
	if !errors.As(err, &refusal) || !refusal.SendAt.Equal(at) || refusal.Recipient != "anna" {
		t.Fatalf("%v at %s: %v, though there is no place", m, at.Sub(began), err)
	}
	m.wantDecision(t, held, at, refusal.Decision)
	return false
}

func (m *model) wantDecision(t *rapid.T, held oracle, at time.Time, d quota.Decision) {
	t.Helper()
	var want []quota.Violation
	for _, r := range m.policy {
		if ids, n := held.full(r, at); n >= r.Limit {
			v := quota.Violation{Rule: r}
			for _, id := range ids {
				v.Conflicts = append(v.Conflicts, quota.Booking{ID: id, At: held[id]})
			}
			want = append(want, v)
		}
	}
	if !slices.EqualFunc(d.Violations, want, sameViolation) {
		t.Fatalf("%v at %s: violations\n%v, want\n%v", m, at.Sub(began), d.Violations, want)
	}
	if next := held.next(m.policy, at); !d.Next.Equal(next) {
		t.Fatalf("%v at %s: next %s, want %s", m, at.Sub(began), d.Next.Sub(began), next.Sub(began))
	}
	if previous := held.previous(m.policy, at, began); !d.Previous.Equal(previous) {
		t.Fatalf("%v at %s: previous %s, want %s", m, at.Sub(began), d.Previous.Sub(began), previous.Sub(began))
	}
}

// sameViolation compares conflicts by time, and by id where that is known: the conflicts of a refused atomic batch do
// not list its members.
func sameViolation(got, want quota.Violation) bool {
	byTime := func(x, y quota.Booking) int { return x.At.Compare(y.At) }
	known := func(b quota.Booking) bool { return b.ID.Version() == 7 }
	ids := map[uuid.UUID]bool{}
	for _, b := range got.Conflicts {
		ids[b.ID] = true
	}
	return got.Rule == want.Rule && slices.IsSortedFunc(got.Conflicts, byTime) &&
		slices.EqualFunc(got.Conflicts, slices.SortedFunc(slices.Values(want.Conflicts), byTime), func(x, y quota.Booking) bool { return x.At.Equal(y.At) }) &&
		!slices.ContainsFunc(want.Conflicts, func(b quota.Booking) bool { return known(b) && !ids[b.ID] })
}

func (m *model) wantUsage(t *rapid.T, at time.Time, usage []quota.Usage) {
	t.Helper()
	for i, r := range m.policy {
		_, n := m.held.full(r, at)
		if usage[i] != (quota.Usage{Rule: r, Used: n, Remaining: max(0, r.Limit-n)}) {
			t.Fatalf("%v at %s: usage %+v, the oracle counts %d", m, at.Sub(began), usage[i], n)
		}
	}
}

func (m *model) submit(t *rapid.T) {
	r := request(moments.Draw(t, "at"))
	o := schedule.Options{ValidateOnly: rapid.IntRange(0, 4).Draw(t, "only validate") == 0}
	res, err := m.bundle(t).Submit(t.Context(), m.tenant, r, o)
	if !m.wantAnswer(t, m.held, r.SendAt, err) {
		return
	}
	m.held[res.Push.ID] = r.SendAt
	m.wantUsage(t, r.SendAt, res.Usage)
	if o.ValidateOnly {
		delete(m.held, res.Push.ID)
	}
}

// submitAnyTime submits a push that may be moved to the next free time, up to a latest.
func (m *model) submitAnyTime(t *rapid.T) {
	r := request(moments.Draw(t, "at"))
	r.Defer = true
	if within := moments.Draw(t, "within"); within > 10*time.Second {
		r.Latest = r.SendAt.Add(within)
	}
	res, err := m.bundle(t).Submit(t.Context(), m.tenant, r, schedule.Options{})
	next := m.held.next(m.policy, r.SendAt)
	if !r.Latest.IsZero() && next.After(r.Latest) {
		m.wantAnswer(t, m.held, r.SendAt, err)
		return
	}
	if err != nil || !res.Push.SendAt.Equal(next) || !res.Push.RequestedSendAt.Equal(r.SendAt) {
		t.Fatalf("%v at %s or later: %s, %v; want %s", m, r.SendAt.Sub(began), res.Push.SendAt.Sub(began), err, next.Sub(began))
	}
	m.held[res.Push.ID] = next
	m.wantUsage(t, next, res.Usage)
}

func (m *model) submitBatch(t *rapid.T) {
	atomic := rapid.Bool().Draw(t, "atomic")
	members := make([]schedule.Member, rapid.IntRange(1, 4).Draw(t, "members"))
	for i := range members {
		members[i].Request = request(moments.Draw(t, "at"))
	}
	if err := m.bundle(t).SubmitBatch(t.Context(), m.tenant, members, atomic, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	held, refused := maps.Clone(m.held), 0
	for _, one := range members {
		switch at := one.Request.SendAt; {
		case !held.free(m.policy, at):
			refused++
			m.wantAnswer(t, held, at, one.Err)
		case one.Err == nil:
			held[one.Decision.Push.ID] = at
		case atomic && errors.Is(one.Err, schedule.ErrOthersRefused):
			held[uuid.New()] = at // its id is unknown
		default:
			t.Fatalf("%v: member at %s: %v", m, at.Sub(began), one.Err)
		}
	}
	if !atomic || refused == 0 {
		m.held = held
	}
}

// some draws one of the pushes that hold a place.
func (m *model) some(t *rapid.T) (uuid.UUID, bool) {
	ids := slices.SortedFunc(maps.Keys(m.held), func(a, b uuid.UUID) int { return m.held[a].Compare(m.held[b]) })
	if len(ids) == 0 {
		return uuid.Nil, false
	}
	return rapid.SampledFrom(ids).Draw(t, "push"), true
}

func (m *model) cancel(t *rapid.T) {
	if id, ok := m.some(t); ok {
		if p, err := m.bundle(t).Cancel(t.Context(), m.tenant, id); err != nil || p.Status != push.Canceled {
			t.Fatalf("cancel: %+v, %v", p, err)
		}
		delete(m.held, id)
	}
}

func (m *model) move(t *rapid.T) {
	id, ok := m.some(t)
	if !ok {
		return
	}
	to := began.Add(moments.Draw(t, "to"))
	res, err := m.bundle(t).Reschedule(t.Context(), m.tenant, id, schedule.When{SendAt: to}, schedule.Options{})
	others := maps.Clone(m.held)
	delete(others, id)
	if m.wantAnswer(t, others, to, err) {
		m.held[id] = to
		m.wantUsage(t, to, res.Usage)
	}
}

func (m *model) readBack(t *rapid.T) {
	anna, at := quota.Recipient{Tenant: m.tenant, ID: "anna"}, began.Add(moments.Draw(t, "at"))
	usage, d, err := m.bundle(t).Quota(t.Context(), anna, quota.Kind{}, at)
	if err != nil || d.Allowed() != m.held.free(m.policy, at) {
		t.Fatalf("%v at %s: %+v, %v", m, at.Sub(began), d, err)
	}
	m.wantUsage(t, at, usage)
	refusal, err := m.bundle(t).Check(t.Context(), m.tenant, schedule.Request{Content: push.Content{Recipient: "anna"}, SendAt: at})
	if err != nil {
		t.Fatal(err)
	}
	m.wantDecision(t, m.held, at, refusal.Decision)

	until := at.Add(30 * time.Second)
	slots, err := m.bundle(t).Slots(t.Context(), anna, quota.Kind{}, at, until)
	if err != nil {
		t.Fatal(err)
	}
	for s := at; !s.After(until); s = s.Add(time.Second) {
		if covered := slices.ContainsFunc(slots.Blocked, func(i quota.Interval) bool { return i.Covers(s) }); covered == m.held.free(m.policy, s) {
			t.Fatalf("%v: blocked at %s: %v", m, s.Sub(began), covered)
		}
	}
	for _, h := range slots.Bookings {
		if !m.held[h.ID].Equal(h.At) || h.At.Before(at) || h.At.After(until) {
			t.Fatalf("%v: slots show %+v", m, h)
		}
	}
}

// forget loses the cache, as a flush of Redis or its expiry does.
func (m *model) forget(*rapid.T) {
	m.bundles[0].cache.Forget(quota.Recipient{Tenant: m.tenant, ID: "anna"})
}

// TestService_Model drives a recipient's calendar through random submits, cancels and moves, at two API processes, with
// a cache that is warm, cold or lost, and without Redis. Every answer matches the oracle.
func TestService_Model(t *testing.T) {
	t.Parallel()
	with := newServers(t)
	for name, s := range map[string]servers{"with Redis": with, "without Redis": with.withoutRedis()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bundles := []*bundle{s.open(t, nil), s.beside(t).open(t, nil)}
			drive := func(t *rapid.T) {
				m := newModel(t, bundles)
				t.Repeat(map[string]func(*rapid.T){
					"submit": m.submit, "submit again": m.submit, "submit once more": m.submit, "and more": m.submit, "submit any time": m.submitAnyTime, "submit a batch": m.submitBatch,
					"cancel": m.cancel, "move": m.move, "read": m.readBack, "forget": m.forget,
				})
			}
			answered := func(state string) int {
				return bundles[0].metrics.of("cache "+state) + bundles[1].metrics.of("cache "+state)
			}
			enough := func() bool { // without Redis the cache is always cold
				warm := answered("free") > 50 && answered("blocked") > 16
				return answered("cold") >= 50 && warm == (s.redis != noRedis)
			}
			testenv.Enough(enough, func() { rapid.Check(t, drive) })
			t.Logf("the cache answered %d cold, %d free, %d blocked", answered("cold"), answered("free"), answered("blocked"))
			if !enough() {
				t.Error("the answers of the cache are too one-sided to prove anything")
			}
		})
	}
}

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
)

// world is one recipient in two offices, and what the oracle holds of it.
type world struct {
	offices []*office
	tenant  uuid.UUID
	policy  quota.Policy
	held    oracle
}

var policies = []quota.Policy{
	{{Name: "a", Limit: 1, Window: 7 * time.Second}},
	{{Name: "a", Limit: 2, Window: 10 * time.Second}},
	{{Name: "a", Limit: 1, Window: 3 * time.Second}, {Name: "b", Limit: 3, Window: 20 * time.Second}},
	{{Name: "a", Limit: 2, Window: 5 * time.Second}, {Name: "b", Limit: 4, Window: 25 * time.Second}, {Name: "c", Limit: 5, Window: 40 * time.Second}},
}

var moments = rapid.Map(rapid.IntRange(1, 90), func(n int) time.Duration { return time.Duration(n) * time.Second })

func newWorld(t *rapid.T, offices []*office) *world {
	return &world{offices: offices, tenant: uuid.New(), policy: rapid.SampledFrom(policies).Draw(t, "policy"), held: oracle{}}
}

// office is any of the two.
func (w *world) office(t *rapid.T) *schedule.Service {
	return w.offices[rapid.IntRange(0, len(w.offices)-1).Draw(t, "office")].service(w.policy)
}

func (w *world) String() string {
	times := slices.SortedFunc(maps.Values(w.held), time.Time.Compare)
	s := fmt.Sprint(w.policy, " booked")
	for _, at := range times {
		s += fmt.Sprint(" ", at.Sub(began))
	}
	return s
}

// wantAnswer holds the answer to a request for a place to the oracle. held is
// what is in the way.
func (w *world) wantAnswer(t *rapid.T, held oracle, at time.Time, err error) (allowed bool) {
	t.Helper()
	if held.free(w.policy, at) {
		if err != nil {
			t.Fatalf("%v at %s: %v, though it is free", w, at.Sub(began), err)
		}
		return true
	}
	var refusal *schedule.Refusal
	if !errors.As(err, &refusal) || !refusal.SendAt.Equal(at) || refusal.Recipient != "anna" {
		t.Fatalf("%v at %s: %v, though there is no place", w, at.Sub(began), err)
	}
	w.wantDecision(t, held, at, refusal.Decision)
	return false
}

func (w *world) wantDecision(t *rapid.T, held oracle, at time.Time, d quota.Decision) {
	t.Helper()
	var want []quota.Violation
	for _, r := range w.policy {
		if ids, n := held.full(r, at); n >= r.Limit {
			v := quota.Violation{Rule: r}
			for _, id := range ids {
				v.Conflicts = append(v.Conflicts, quota.Booking{ID: id, At: held[id]})
			}
			want = append(want, v)
		}
	}
	if !slices.EqualFunc(d.Violations, want, sameViolation) {
		t.Fatalf("%v at %s: violations\n%v, want\n%v", w, at.Sub(began), d.Violations, want)
	}
	if next := held.next(w.policy, at); !d.Next.Equal(next) {
		t.Fatalf("%v at %s: next %s, want %s", w, at.Sub(began), d.Next.Sub(began), next.Sub(began))
	}
	if previous := held.previous(w.policy, at, began); !d.Previous.Equal(previous) {
		t.Fatalf("%v at %s: previous %s, want %s", w, at.Sub(began), d.Previous.Sub(began), previous.Sub(began))
	}
}

// sameViolation compares conflicts by time, and by id where that is known: the
// members of a refused atomic batch are told of none.
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

func (w *world) wantUsage(t *rapid.T, at time.Time, usage []quota.Usage) {
	t.Helper()
	for i, r := range w.policy {
		_, n := w.held.full(r, at)
		if usage[i] != (quota.Usage{Rule: r, Used: n, Remaining: max(0, r.Limit-n)}) {
			t.Fatalf("%v at %s: usage %+v, the oracle counts %d", w, at.Sub(began), usage[i], n)
		}
	}
}

func (w *world) submit(t *rapid.T) {
	r := request(moments.Draw(t, "at"))
	o := schedule.Options{ValidateOnly: rapid.IntRange(0, 4).Draw(t, "only validate") == 0}
	res, err := w.office(t).Submit(t.Context(), w.tenant, r, o)
	if !w.wantAnswer(t, w.held, r.SendAt, err) {
		return
	}
	w.held[res.Push.ID] = r.SendAt
	w.wantUsage(t, r.SendAt, res.Usage)
	if o.ValidateOnly {
		delete(w.held, res.Push.ID)
	}
}

// submitAnyTime lets the push be moved to the next free time, up to a latest.
func (w *world) submitAnyTime(t *rapid.T) {
	r := request(moments.Draw(t, "at"))
	r.Defer = true
	if within := moments.Draw(t, "within"); within > 10*time.Second {
		r.Latest = r.SendAt.Add(within)
	}
	res, err := w.office(t).Submit(t.Context(), w.tenant, r, schedule.Options{})
	next := w.held.next(w.policy, r.SendAt)
	if !r.Latest.IsZero() && next.After(r.Latest) {
		w.wantAnswer(t, w.held, r.SendAt, err)
		return
	}
	if err != nil || !res.Push.SendAt.Equal(next) || !res.Push.RequestedSendAt.Equal(r.SendAt) {
		t.Fatalf("%v at %s or later: %s, %v; want %s", w, r.SendAt.Sub(began), res.Push.SendAt.Sub(began), err, next.Sub(began))
	}
	w.held[res.Push.ID] = next
	w.wantUsage(t, next, res.Usage)
}

func (w *world) submitBatch(t *rapid.T) {
	atomic := rapid.Bool().Draw(t, "atomic")
	members := make([]schedule.Member, rapid.IntRange(1, 4).Draw(t, "members"))
	for i := range members {
		members[i].Request = request(moments.Draw(t, "at"))
	}
	if err := w.office(t).SubmitBatch(t.Context(), w.tenant, members, atomic, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	held, refused := maps.Clone(w.held), 0
	for _, m := range members {
		switch at := m.Request.SendAt; {
		case !held.free(w.policy, at):
			refused++
			w.wantAnswer(t, held, at, m.Err)
		case m.Err == nil:
			held[m.Result.Push.ID] = at
		case atomic && errors.Is(m.Err, schedule.ErrOthersRefused):
			held[uuid.New()] = at // its id is not told
		default:
			t.Fatalf("%v: member at %s: %v", w, at.Sub(began), m.Err)
		}
	}
	if !atomic || refused == 0 {
		w.held = held
	}
}

// some draws one of the pushes that hold a place.
func (w *world) some(t *rapid.T) (uuid.UUID, bool) {
	ids := slices.SortedFunc(maps.Keys(w.held), func(a, b uuid.UUID) int { return w.held[a].Compare(w.held[b]) })
	if len(ids) == 0 {
		return uuid.Nil, false
	}
	return rapid.SampledFrom(ids).Draw(t, "push"), true
}

func (w *world) cancel(t *rapid.T) {
	if id, ok := w.some(t); ok {
		if p, err := w.office(t).Cancel(t.Context(), w.tenant, id); err != nil || p.Status != push.Canceled {
			t.Fatalf("cancel: %+v, %v", p, err)
		}
		delete(w.held, id)
	}
}

func (w *world) move(t *rapid.T) {
	id, ok := w.some(t)
	if !ok {
		return
	}
	to := began.Add(moments.Draw(t, "to"))
	res, err := w.office(t).Reschedule(t.Context(), w.tenant, id, to, push.OwnCaps{})
	others := maps.Clone(w.held)
	delete(others, id)
	if w.wantAnswer(t, others, to, err) {
		w.held[id] = to
		w.wantUsage(t, to, res.Usage)
	}
}

func (w *world) look(t *rapid.T) {
	anna, at := quota.Recipient{Tenant: w.tenant, ID: "anna"}, began.Add(moments.Draw(t, "at"))
	usage, d, err := w.office(t).Quota(t.Context(), anna, at)
	if err != nil || d.Allowed() != w.held.free(w.policy, at) {
		t.Fatalf("%v at %s: %+v, %v", w, at.Sub(began), d, err)
	}
	w.wantUsage(t, at, usage)
	refusal, err := w.office(t).Check(t.Context(), w.tenant, schedule.Request{Recipient: "anna", SendAt: at})
	if err != nil {
		t.Fatal(err)
	}
	w.wantDecision(t, w.held, at, refusal.Decision)

	until := at.Add(30 * time.Second)
	slots, err := w.office(t).Slots(t.Context(), anna, at, until)
	if err != nil {
		t.Fatal(err)
	}
	for s := at; !s.After(until); s = s.Add(time.Second) {
		if covered := slices.ContainsFunc(slots.Blocked, func(i quota.Interval) bool { return i.Covers(s) }); covered == w.held.free(w.policy, s) {
			t.Fatalf("%v: blocked at %s: %v", w, s.Sub(began), covered)
		}
	}
	for _, h := range slots.Bookings {
		if !w.held[h.ID].Equal(h.At) || h.At.Before(at) || h.At.After(until) {
			t.Fatalf("%v: slots show %+v", w, h)
		}
	}
}

// forget loses the cache, as a flush of Redis or its expiry does.
func (w *world) forget(*rapid.T) {
	w.offices[0].cache.Forget(quota.Recipient{Tenant: w.tenant, ID: "anna"})
}

// TestEveryAnswerIsTheOracles drives a recipient's calendar through random
// submits, cancels and moves in any order, at two API processes with Postgres
// and a cache that is warm, cold or lost, and without Redis.
func TestEveryAnswerIsTheOracles(t *testing.T) {
	t.Parallel()
	with := newServers(t)
	without := servers{postgres: with.postgres, redis: noRedis}
	for name, s := range map[string]servers{"with Redis": with, "without Redis": without} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offices := []*office{s.open(t, nil), s.open(t, nil)}
			rapid.Check(t, func(t *rapid.T) {
				w := newWorld(t, offices)
				t.Repeat(map[string]func(*rapid.T){
					"submit": w.submit, "submit again": w.submit, "submit any time": w.submitAnyTime, "submit a batch": w.submitBatch,
					"cancel": w.cancel, "move": w.move, "look": w.look, "forget": w.forget,
				})
			})
			answers := map[string]int{}
			for _, o := range offices {
				for _, state := range []string{"cold", "free", "blocked"} {
					answers[state] += o.seen.of("cache " + state)
				}
			}
			t.Logf("the cache answered %v", answers)
			if warm := answers["free"] > 50 && answers["blocked"] > 20; answers["cold"] < 50 || warm != (s.redis != noRedis) {
				t.Errorf("the cache answered %v: too one-sided to show anything", answers)
			}
		})
	}
}

package quota_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// model is the expected state of a recipient's cache: bookings in a map, checked by the oracle.
type model struct {
	held   map[uuid.UUID]time.Time
	gone   map[uuid.UUID]bool // recently given back
	loaded bool
	kinds  bool      // the cache was loaded with kinds
	since  time.Time // the first update while the cache was not loaded

	policy quota.Policy
	asks   bool // the current policy depends on kinds
}

// kindOf returns the kind of an id, which never changes.
func kindOf(id uuid.UUID) quota.Kind {
	return []quota.Kind{
		{Channel: "push"}, {Channel: "sms"}, {Channel: "sms", Category: "news"}, {Channel: "email", Category: "offers"}, {Channel: "push", Category: "news"},
	}[id[15]%5]
}

// asked returns a booking with the kind that the current policy needs.
func (m *model) asked(id uuid.UUID, at time.Time) quota.Booking {
	b := quota.Booking{ID: id, At: at}
	if m.asks {
		b.Kind = kindOf(id)
	}
	return b
}

// warm reports whether the cache is loaded with the kinds that the current policy needs.
func (m *model) warm() bool { return m.loaded && m.kinds == m.asks }

// quiet reports whether quiet hours of the policy cover a time.
func (m *model) quiet(at time.Time) bool {
	return slices.ContainsFunc(m.policy, func(r quota.Rule) bool { return r.Quiet && oracleBroken(r, nil, at) })
}

func (m *model) bookings() []quota.Booking {
	var bookings []quota.Booking
	for id, at := range m.held {
		bookings = append(bookings, m.asked(id, at))
	}
	slices.SortFunc(bookings, func(a, b quota.Booking) int {
		return cmp.Or(a.At.Compare(b.At), slices.Compare(a.ID[:], b.ID[:]))
	})
	return bookings
}

// reserve returns the expected answer of the cache, and books.
func (m *model) reserve(b quota.Booking) (quota.State, bool) {
	at, held := m.held[b.ID]
	switch {
	case m.quiet(b.At):
		return quota.Blocked, false
	case !m.warm():
		return quota.Cold, true
	case held && at.Equal(b.At):
		return quota.Free, false
	case held, m.gone[b.ID]:
		return quota.Cold, false
	case !oracleFree(m.policy, m.bookings(), b.At):
		return quota.Blocked, false
	}
	m.held[b.ID] = b.At
	return quota.Free, false
}

// TestReserve_Oracle runs random histories with policy changes against a recipient's cache on a real Redis. It compares
// every reservation of Lua, Go and the oracle.
func TestReserve_Oracle(t *testing.T) {
	t.Parallel()
	l, _ := newCache(t)
	answers, asked := map[quota.State]int{}, map[quota.State]int{}
	states := []quota.State{quota.Cold, quota.Free, quota.Blocked}
	rare := func(s quota.State) bool { return answers[s]-asked[s] < 50 || asked[s] < 50 }
	histories := func(t *rapid.T) {
		anna := anybody()
		m := &model{held: map[uuid.UUID]time.Time{}, gone: map[uuid.UUID]bool{}, since: time.Now()}
		changePolicy := func(t *rapid.T) {
			if m.asks = rapid.Bool().Draw(t, "kinds"); m.asks {
				m.policy = scopedPolicies(0).Draw(t, "scoped policy")
			} else {
				m.policy = policies(0).Draw(t, "policy")
			}
		}
		changePolicy(t)
		someID := rapid.Map(rapid.IntRange(1, 14), func(n int) uuid.UUID { return uuid.UUID{15: byte(n)} })
		flush := func() {
			if err := l.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		forget := func() {
			l.Forget(anna)
			flush()
			m.loaded, m.since = false, time.Now()
			clear(m.gone)
		}
		changes := func(t *rapid.T) {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				b := quota.Booking{ID: someID.Draw(t, "id"), At: moments(grain).Draw(t, "at")}
				b.Kind = kindOf(b.ID)
				if rapid.Bool().Draw(t, "moves") {
					l.Hold(anna, b)
					m.held[b.ID] = b.At
					delete(m.gone, b.ID)
					continue
				}
				if ids := slices.SortedFunc(maps.Keys(m.held), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }); len(ids) > 0 {
					b.ID = rapid.SampledFrom(ids).Draw(t, "held")
					b.Kind = kindOf(b.ID)
				}
				l.Release(anna, b)
				delete(m.held, b.ID)
				m.gone[b.ID] = true
			}
		}
		reserve := func(t *rapid.T) {
			for range rapid.IntRange(1, 6).Draw(t, "reservations") {
				b := m.asked(someID.Draw(t, "id"), moments(grain).Draw(t, "at"))
				before, p := m.bookings(), m.policy
				_, held := m.held[b.ID]
				warm := m.warm()
				want, fill := m.reserve(b)
				got := l.Reserve(anna, b, p)
				if got.State != want || got.Fill != fill {
					t.Fatalf("Lua returns %s, fill %v; the oracle %s, %v: %v", got.State, got.Fill, want, fill, calendar{p, before})
				}
				if allowed := len(p.Violations(quota.NewTimeline(before), b.At)) == 0; warm && !held && !m.gone[b.ID] && allowed != (want == quota.Free) {
					t.Fatalf("Go returns allowed %v, the oracle %s: %v", allowed, want, calendar{p, before})
				}
				if fill && rapid.IntRange(0, 3).Draw(t, "fills") > 0 {
					old := m.bookings() // before these changes
					changes(t)
					if m.loaded && m.asks { // the cache has no kinds, and drops the update
						old = m.bookings()
						clear(m.gone)
					}
					l.Fill(anna, old, m.asks)
					flush()
					m.loaded, m.kinds = true, m.asks
					if time.Since(m.since) > 4*time.Second { // on a busy machine the cache may have dropped the changes
						forget()
					}
				}
				answers[want]++
				if m.asks {
					asked[want]++
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve":       reserve,
			"change policy": changePolicy,
			"change":        changes,
			"add": func(t *rapid.T) {
				b := m.asked(someID.Draw(t, "id"), moments(grain).Draw(t, "at"))
				if _, held := m.held[b.ID]; held || m.gone[b.ID] || !m.loaded {
					return
				}
				l.Add(anna, b)
				flush()
				m.held[b.ID] = b.At
				if !m.warm() { // the cache cannot store this booking, and drops the others
					forget()
				}
			},
			"forget": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
					forget()
				}
			},
		})
	}
	rapid.Check(t, histories)
	if slices.ContainsFunc(states, rare) { // a hundred histories seldom produce enough of each answer
		rapid.Check(t, histories)
	}
	for _, s := range states {
		if rare(s) {
			t.Errorf("only %d answers were %s, %d of them under scoped policies", answers[s], s, asked[s])
		}
	}
	t.Logf("answers: %v, under scoped policies %v", answers, asked)
}

package quota_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// model is what a recipient's cache should be: places in a map, judged by the
// oracle.
type model struct {
	held   map[uuid.UUID]time.Time
	loaded bool
}

func (m *model) bookings() []quota.Booking {
	var bookings []quota.Booking
	for id, at := range m.held {
		bookings = append(bookings, quota.Booking{ID: id, At: at})
	}
	slices.SortFunc(bookings, func(a, b quota.Booking) int {
		return cmp.Or(a.At.Compare(b.At), slices.Compare(a.ID[:], b.ID[:]))
	})
	return bookings
}

// reserve says what the cache should answer, and books.
func (m *model) reserve(b quota.Booking, p quota.Policy) (quota.State, bool) {
	at, held := m.held[b.ID]
	switch {
	case !m.loaded:
		return quota.Cold, true
	case held && at.Equal(b.At):
		return quota.Free, false
	case held:
		return quota.Cold, false
	case !oracleFree(p, m.bookings(), b.At):
		return quota.Blocked, false
	}
	m.held[b.ID] = b.At
	return quota.Free, false
}

// TestLuaGoAndOracleAgree drives a recipient's cache on a real Redis through
// random histories, and asks all three about every reservation.
func TestLuaGoAndOracleAgree(t *testing.T) {
	t.Parallel()
	l, _ := newCache(t)
	answers := map[quota.State]int{}
	rapid.Check(t, func(t *rapid.T) {
		anna, p := anybody(), policies(0).Draw(t, "policy")
		m := &model{held: map[uuid.UUID]time.Time{}}
		someID := rapid.Map(rapid.IntRange(1, 14), func(n int) uuid.UUID { return uuid.UUID{15: byte(n)} })
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				b := quota.Booking{ID: someID.Draw(t, "id"), At: moments(grain).Draw(t, "at")}
				before := m.bookings()
				_, held := m.held[b.ID]
				want, fill := m.reserve(b, p)
				got := l.Reserve(anna, b, p)
				if got.State != want || got.Fill != fill {
					t.Fatalf("Lua says %s, fill %v; the oracle %s, %v: %v", got.State, got.Fill, want, fill, calendar{p, before})
				}
				if allowed := len(p.Violations(quota.NewTimeline(before), b.At)) == 0; m.loaded && !held && allowed != (want == quota.Free) {
					t.Fatalf("Go says allowed %v, the oracle %s: %v", allowed, want, calendar{p, before})
				}
				if fill && rapid.Bool().Draw(t, "fills") {
					l.Fill(anna, b.ID, m.bookings())
					m.loaded = true
				}
				answers[want]++
			},
			"hold": func(t *rapid.T) {
				b := quota.Booking{ID: someID.Draw(t, "id"), At: moments(grain).Draw(t, "at")}
				l.Hold(anna, b)
				m.held[b.ID] = b.At
			},
			"release": func(t *rapid.T) {
				id := someID.Draw(t, "id")
				if ids := slices.SortedFunc(maps.Keys(m.held), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }); len(ids) > 0 {
					id = rapid.SampledFrom(ids).Draw(t, "held")
				}
				l.Release(anna, id)
				delete(m.held, id)
			},
			"forget": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
					l.Forget(anna)
					m.loaded = false
				}
			},
		})
	})
	for _, s := range []quota.State{quota.Cold, quota.Free, quota.Blocked} {
		if answers[s] < 50 {
			t.Errorf("only %d answers were %s", answers[s], s)
		}
	}
	t.Logf("answers: %v", answers)
}

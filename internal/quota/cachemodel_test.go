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

// model is what a recipient's cache should be: places in a map, judged by the oracle.
type model struct {
	held   map[uuid.UUID]time.Time
	gone   map[uuid.UUID]bool // given back lately
	loaded bool
	since  time.Time // the first change that the cache was told while it was not loaded
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
	case held, m.gone[b.ID]:
		return quota.Cold, false
	case !oracleFree(p, m.bookings(), b.At):
		return quota.Blocked, false
	}
	m.held[b.ID] = b.At
	return quota.Free, false
}

// TestReserve_Oracle drives a recipient's cache on a real Redis through random histories, and asks all three about
// every reservation.
func TestReserve_Oracle(t *testing.T) {
	t.Parallel()
	l, _ := newCache(t)
	answers := map[quota.State]int{}
	rapid.Check(t, func(t *rapid.T) {
		anna, p := anybody(), policies(0).Draw(t, "policy")
		m := &model{held: map[uuid.UUID]time.Time{}, gone: map[uuid.UUID]bool{}, since: time.Now()}
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
				if rapid.Bool().Draw(t, "moves") {
					l.Hold(anna, b)
					m.held[b.ID] = b.At
					delete(m.gone, b.ID)
					continue
				}
				if ids := slices.SortedFunc(maps.Keys(m.held), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }); len(ids) > 0 {
					b.ID = rapid.SampledFrom(ids).Draw(t, "held")
				}
				l.Release(anna, b.ID)
				delete(m.held, b.ID)
				m.gone[b.ID] = true
			}
		}
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
				if allowed := len(p.Violations(quota.NewTimeline(before), b.At)) == 0; m.loaded && !held && !m.gone[b.ID] && allowed != (want == quota.Free) {
					t.Fatalf("Go says allowed %v, the oracle %s: %v", allowed, want, calendar{p, before})
				}
				if fill && rapid.Bool().Draw(t, "fills") {
					old := m.bookings() // as of before these changes
					changes(t)
					l.Fill(anna, old)
					flush()
					m.loaded = true
					if time.Since(m.since) > 4*time.Second { // a busy machine: it may have forgotten the changes
						forget()
					}
				}
				answers[want]++
			},
			"change": changes,
			"add": func(t *rapid.T) {
				b := quota.Booking{ID: someID.Draw(t, "id"), At: moments(grain).Draw(t, "at")}
				if _, held := m.held[b.ID]; held || m.gone[b.ID] || !m.loaded {
					return
				}
				l.Add(anna, b)
				flush()
				m.held[b.ID] = b.At
			},
			"forget": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
					forget()
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

package schedule

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
)

// refusedCounts is a store that fails at first.
type refusedCounts struct {
	err   error
	added map[stats.RefusedCount]int
}

func (s *refusedCounts) AddRefused(_ context.Context, counts []stats.RefusedCount) error {
	if s.err != nil {
		return s.err
	}
	for _, one := range counts {
		n := one.Pushes
		one.Pushes = 0
		s.added[one] += n
	}
	return nil
}

// TestRefusals: a push counts once, and once for each of its rules. While Postgres is away no count is lost, and none
// counts twice.
func TestRefusals(t *testing.T) {
	st := &refusedCounts{err: errors.New("away"), added: map[stats.RefusedCount]int{}}
	r := NewRefusals(st, slog.New(slog.DiscardHandler))
	tenant, at := uuid.New(), time.Date(2026, 12, 1, 9, 59, 59, 0, time.UTC)
	note := func(at time.Time, rules ...string) {
		r.count(tenant, push.Normal, &keptRefusal{Event: Event{At: at, Channel: "push", Category: "news"}, Rules: rules})
	}
	note(at, "per-day", "night", "per-day")
	note(at, "per-day")
	if err := r.Flush(t.Context()); err == nil {
		t.Error("the store was away")
	}
	note(at.Add(time.Second))
	st.err = nil
	for range 2 {
		if err := r.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	of := func(hour int, rule string) stats.RefusedCount {
		return stats.RefusedCount{Tenant: tenant, Hour: time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC), Channel: "push", Category: "news", Rule: rule}
	}
	want := map[stats.RefusedCount]int{of(9, ""): 2, of(9, "per-day"): 2, of(9, "night"): 1, of(10, ""): 1}
	if !reflect.DeepEqual(st.added, want) {
		t.Errorf("%v, want %v", st.added, want)
	}
	var none *Refusals
	none.count(tenant, push.Normal, &keptRefusal{})
}

// TestRefusals_Bounded: a tenant with very many categories is limited to its share of the memory.
func TestRefusals_Bounded(t *testing.T) {
	st := &refusedCounts{added: map[stats.RefusedCount]int{}}
	r := NewRefusals(st, slog.New(slog.DiscardHandler))
	greedy, other := uuid.New(), uuid.New()
	for range tenantRefused + 10 {
		r.count(greedy, push.Normal, &keptRefusal{Event: Event{Category: uuid.NewString()}})
	}
	r.count(other, push.Normal, &keptRefusal{Event: Event{Category: "news"}})
	if err := r.Flush(t.Context()); err != nil || len(st.added) != tenantRefused+1 || r.size != 0 {
		t.Errorf("%d counts, want %d; %v", len(st.added), tenantRefused+1, err)
	}
}

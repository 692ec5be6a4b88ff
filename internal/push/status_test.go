package push_test

import (
	"slices"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestStatus states for every state what follows from the arrows.
func TestStatus(t *testing.T) {
	for _, row := range []struct {
		status        push.Status
		next          []push.Status
		final, counts bool
	}{
		{push.Scheduled, []push.Status{push.Sending, push.Sent, push.Canceled, push.Expired}, false, true},
		{push.Sending, []push.Status{push.Scheduled, push.Sent, push.Failed}, false, true},
		{push.Sent, nil, true, true},
		{push.Failed, nil, true, false},
		{push.Canceled, nil, true, false},
		{push.Expired, nil, true, false},
	} {
		for _, next := range push.Statuses {
			if got, want := row.status.CanBecome(next), slices.Contains(row.next, next); got != want {
				t.Errorf("%s can become %s: %v, want %v", row.status, next, got, want)
			}
		}
		if got := row.status.Final(); got != row.final {
			t.Errorf("%s is final: %v, want %v", row.status, got, row.final)
		}
		if got := row.status.Counts(); got != row.counts {
			t.Errorf("%s holds a place: %v, want %v", row.status, got, row.counts)
		}
	}
}

func TestStatus_Reachable(t *testing.T) {
	for _, s := range push.Statuses {
		if !leads(push.Scheduled, s) {
			t.Errorf("no push can ever be %s", s)
		}
		if !slices.ContainsFunc(push.Statuses, func(end push.Status) bool { return end.Final() && leads(s, end) }) {
			t.Errorf("a push that is %s can never end", s)
		}
	}
}

// leads follows the arrows from one state to another.
func leads(from, to push.Status) bool {
	seen := []push.Status{from}
	for i := 0; i < len(seen); i++ {
		for _, a := range push.Arrows {
			if a.From == seen[i] && !slices.Contains(seen, a.To) {
				seen = append(seen, a.To)
			}
		}
	}
	return slices.Contains(seen, to)
}

func TestStatus_Arrows(t *testing.T) {
	type pair struct{ from, to push.Status }
	seen := map[pair]bool{}
	for _, a := range push.Arrows {
		if !slices.Contains(push.Statuses, a.From) || !slices.Contains(push.Statuses, a.To) || a.From == a.To {
			t.Errorf("%s → %s joins no two states", a.From, a.To)
		}
		if a.When == "" || seen[pair{a.From, a.To}] {
			t.Errorf("%s → %s says nothing or stands twice", a.From, a.To)
		}
		seen[pair{a.From, a.To}] = true
	}
}

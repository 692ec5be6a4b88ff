package push_test

import (
	"slices"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestStatus lists the next states of every state.
func TestStatus(t *testing.T) {
	for _, row := range []struct {
		status push.Status
		next   []push.Status
	}{
		{push.Scheduled, []push.Status{push.Sending, push.Sent, push.Failed, push.Canceled, push.Expired}},
		{push.Sending, []push.Status{push.Scheduled, push.Sent, push.Failed}},
		{push.Sent, nil},
		{push.Failed, nil},
		{push.Canceled, nil},
		{push.Expired, nil},
	} {
		if got := next(row.status); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(row.next))) {
			t.Errorf("%s can become %s, want %s", row.status, got, row.next)
		}
	}
}

func TestStatus_Reachable(t *testing.T) {
	for _, s := range push.Statuses {
		if !leads(push.Scheduled, s) {
			t.Errorf("no push can ever be %s", s)
		}
		if !slices.ContainsFunc(push.Statuses, func(end push.Status) bool { return next(end) == nil && leads(s, end) }) {
			t.Errorf("a push that is %s can never end", s)
		}
	}
}

// next lists the states that one can become.
func next(from push.Status) (to []push.Status) {
	for _, a := range push.Arrows {
		if a.From == from {
			to = append(to, a.To)
		}
	}
	return to
}

// leads reports whether the arrows lead from one state to another.
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
			t.Errorf("%s → %s does not connect two states", a.From, a.To)
		}
		if a.When == "" || seen[pair{a.From, a.To}] {
			t.Errorf("%s → %s has no text or is a duplicate", a.From, a.To)
		}
		seen[pair{a.From, a.To}] = true
	}
}

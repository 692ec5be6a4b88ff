package push_test

import (
	"slices"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestArrows_OfEachStatus states which arrows leave each state. The last four states are final.
func TestArrows_OfEachStatus(t *testing.T) {
	for _, row := range []struct {
		status push.Status
		next   []push.Status
	}{
		{push.Scheduled, []push.Status{push.Sending, push.Sent, push.Canceled, push.Expired}},
		{push.Sending, []push.Status{push.Scheduled, push.Sent, push.Failed}},
		{push.Sent, nil},
		{push.Failed, nil},
		{push.Canceled, nil},
		{push.Expired, nil},
	} {
		for _, next := range push.Statuses {
			got := slices.ContainsFunc(push.Arrows, func(a push.Arrow) bool { return a.From == row.status && a.To == next })
			if want := slices.Contains(row.next, next); got != want {
				t.Errorf("%s can become %s: %v, want %v", row.status, next, got, want)
			}
		}
	}
}

func TestArrows_ReachEachStatus(t *testing.T) {
	for _, s := range push.Statuses {
		if !leads(push.Scheduled, s) {
			t.Errorf("no push can ever be %s", s)
		}
		if !slices.ContainsFunc(push.Statuses, func(end push.Status) bool { return final(end) && leads(s, end) }) {
			t.Errorf("a push that is %s can never end", s)
		}
	}
}

// final reports whether no arrow leaves a state.
func final(s push.Status) bool {
	return !slices.ContainsFunc(push.Arrows, func(a push.Arrow) bool { return a.From == s })
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

func TestArrows_JoinStatuses(t *testing.T) {
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

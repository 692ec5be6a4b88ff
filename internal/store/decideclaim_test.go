package store

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestNothingIsPutForward: between the reading of the clock and of what is due
// some time passes, so that a push may be found which, by that clock, is due
// only after the claim's patience. It keeps its time.
func TestNothingIsPutForward(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	next := now.Add(Patience + time.Millisecond)
	policy := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}
	for name, sends := range map[string][]quota.Booking{
		"nothing was sent":                     nil,
		"a send leaves the window before":      {{At: now.Add(-59 * time.Second)}},
		"a send leaves the window just before": {{At: next.Add(-time.Minute - time.Millisecond)}},
	} {
		p := push.Push{ID: uuid.New(), SendAt: next, NextAt: next, ExpiresAt: now.Add(time.Hour)}
		s := &claimState{now: now, recipients: map[int64]*due{1: {push: p, sends: sends}}}
		c := s.decide(ClaimOrder{RecipientKey: 1, Policy: policy, Lease: time.Minute})
		if c.Outcome == Claimed || c.Outcome == Deferred && c.Push.NextAt.Before(next) || c.Outcome == Wait && c.Wait < next.Sub(now) {
			t.Errorf("%s: claim state %d, next at %s, wait %s", name, c.Outcome, c.Push.NextAt.Sub(now), c.Wait)
		}
	}
}

package attempts_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestGate_CountsFromHandover checks that a delivered send counts from its handover to the provider, so that a chain of
// sends a window apart does not drift. A send with an unknown outcome counts from the end of its attempt.
func TestGate_CountsFromHandover(t *testing.T) {
	t.Parallel()
	const window, slow = time.Minute, 300 * time.Millisecond
	for outcome, counted := range map[push.Outcome]time.Duration{push.Delivered: time.Millisecond, push.Unknown: slow} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			b, policy := setup(t), quota.Policy{{Name: "one", Limit: 1, Window: window}}
			b.Booked(t, "anna", 0)
			first := b.MustClaim(t, "anna", policy)
			time.Sleep(slow) // stands for the provider: Postgres' clock measures the duration of an attempt
			b.MustFinish(t, first, booking.Finish{Outcome: outcome, Handed: time.Millisecond, Resolution: push.Resolution{Status: push.Failed}})
			b.Booked(t, "anna", 0)
			second := b.MustClaim(t, "anna", policy)
			if second.Outcome != booking.PutOff {
				t.Fatalf("%+v", second)
			}
			gap := second.Push.NextAt.Sub(first.StartedAt) - window
			if outcome == push.Delivered && gap.Round(time.Microsecond) != counted || outcome == push.Unknown && gap < counted {
				t.Errorf("the next one may begin %s after the window, want %s", gap, counted)
			}
		})
	}
}

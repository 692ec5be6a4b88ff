package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestADeliveredSendCountsFromWhenItWasHandedOver and not from when a slow
// provider answered: a chain of sends a window apart would drift. An attempt of
// unknown outcome may have been delivered until its end.
func TestADeliveredSendCountsFromWhenItWasHandedOver(t *testing.T) {
	t.Parallel()
	const window, slow = time.Minute, 300 * time.Millisecond
	for outcome, counted := range map[push.Outcome]time.Duration{push.Delivered: time.Millisecond, push.Unknown: slow} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			st, tenant := open(t), uuid.New()
			order := booking.ClaimOrder{RecipientKey: push.RecipientKey(tenant, "anna"), Policy: quota.Policy{{Name: "one", Limit: 1, Window: window}}, Lease: time.Minute}
			claim := func() booking.Claim {
				t.Helper()
				c, err := st.Claim(t.Context(), order)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			book(t, st, nil, draft(tenant, "anna", 0))
			first := claim()
			time.Sleep(slow) // the provider takes its time
			if _, err := st.Finish(t.Context(), booking.Finish{
				Push: first.Push.ID, Token: first.Token, Attempt: 1, Outcome: outcome, Handed: time.Millisecond, Resolution: push.Resolution{Status: push.Failed},
			}); err != nil {
				t.Fatal(err)
			}
			book(t, st, nil, draft(tenant, "anna", 0))
			second := claim()
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

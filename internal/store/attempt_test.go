package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestAttempt follows one push from its booking to its record.
func TestAttempt(t *testing.T) {
	t.Parallel()
	st, tenant := open(t), uuid.New()
	d := draft(tenant, "anna", 0)
	v := book(t, st, threeRules, d)
	if v.Outcome != store.Booked || v.Usage[0].Used != 1 || v.Usage[1].Remaining != 4 {
		t.Fatalf("booked: %+v", v)
	}
	claim := func() store.Claim {
		t.Helper()
		c, err := st.Claim(t.Context(), store.ClaimOrder{RecipientKey: push.RecipientKey(tenant, "anna"), Policy: threeRules, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := claim()
	if c.Outcome != store.Claimed || c.Push.ID != d.Push.ID || c.Attempt != 1 {
		t.Fatalf("claimed: %+v", c)
	}
	if again := claim(); again.Outcome != store.Nothing {
		t.Fatalf("claimed while an attempt is under way: %+v", again)
	}
	if _, err := st.Finish(t.Context(), store.Finish{
		Push: c.Push.ID, Token: c.Token, Attempt: 1, Outcome: push.Delivered, ProviderMessageID: "p-1",
		Resolution: push.Resolution{Status: push.Sent},
	}); err != nil {
		t.Fatal(err)
	}
	p, err := st.Push(t.Context(), tenant, d.Push.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != push.Sent || p.Attempts != 1 || len(p.Sends) != 1 || p.Sends[0].Outcome != push.Delivered || p.Sends[0].ProviderMessageID != "p-1" {
		t.Fatalf("recorded: %+v", p)
	}
}

package attempts_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestAttempt follows one push from its booking to its record.
func TestAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := storetest.Draft(b.TenantID, "anna", 0)
	v := storetest.MustBook(t, b.Store, storetest.ThreeRules, d)
	if v.Outcome != booking.Booked || v.Usage[0].Used != 1 || v.Usage[1].Remaining != 4 {
		t.Fatalf("booked: %+v", v)
	}
	c := b.MustClaim(t, "anna", storetest.ThreeRules)
	if c.Outcome != booking.Claimed || c.Push.ID != d.Push.ID || c.Attempt != 1 {
		t.Fatalf("claimed: %+v", c)
	}
	if again := b.MustClaim(t, "anna", storetest.ThreeRules); again.Outcome != booking.Nothing {
		t.Fatalf("claimed while an attempt is under way: %+v", again)
	}
	b.MustFinish(t, c, booking.Finish{Outcome: push.Delivered, ProviderMessageID: "p-1", Resolution: push.Resolution{Status: push.Sent}})
	p := b.MustRead(t, d.Push)
	if p.Status != push.Sent || p.Attempts != 1 || len(p.Sends) != 1 || p.Sends[0].Outcome != push.Delivered || p.Sends[0].ProviderMessageID != "p-1" {
		t.Fatalf("recorded: %+v", p)
	}
}

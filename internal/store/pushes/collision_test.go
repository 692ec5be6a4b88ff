package pushes_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestRecipientKey_Collision checks that two recipients with the same key have separate quotas. Two ids with the same
// 64 bits of a SHA-256 are hard to find, so the test gives bert's rows the key of anna.
func TestRecipientKey_Collision(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	key := push.RecipientKey(b.TenantID, "anna")
	collide := func() {
		b.Exec(t, `UPDATE pushes SET recipient_key = $1`, key)
		b.Exec(t, `UPDATE sends SET recipient_key = $1`, key)
	}
	bert := b.Booked(t, "bert", -time.Minute)
	b.Booked(t, "bert", time.Hour)
	b.Attempted(t, b.TenantID, "bert", push.Delivered, time.Second, 0)
	collide()

	// Bookings and reads.
	v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(b.TenantID, "anna", time.Hour))
	if v.Outcome != booking.Booked || v.Usage[2].Used != 1 {
		t.Errorf("anna is refused for what bert holds: %+v", v)
	}
	held, _, err := b.Bookings(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"}, storetest.Began.Add(-time.Hour), storetest.Began.Add(2*time.Hour), booking.MaxRead, false)
	if err != nil || len(held) != 1 || held[0].ID != v.Push.ID {
		t.Errorf("anna holds %+v, %v", held, err)
	}
	if list, err := b.List(t.Context(), b.TenantID, push.Filter{Recipient: "anna"}, push.Position{}, 10); err != nil || len(list.Pushes) != 1 {
		t.Errorf("anna's list: %+v, %v", list, err)
	}

	// The gate: bert must wait for his own send, and anna not. His push comes before hers until it is put off.
	anna := b.Booked(t, "anna", -time.Second)
	if c := b.MustClaim(t, "anna", storetest.ThreeRules); c.Outcome != booking.PutOff || c.Push.ID != bert.ID {
		t.Fatalf("%+v", c)
	}
	c := b.MustClaim(t, "anna", storetest.ThreeRules)
	if c.Outcome != booking.Claimed || c.Push.ID != anna.ID {
		t.Fatalf("%+v", c)
	}
	// While a push is being sent to her, he waits, and his push stays due.
	b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() WHERE id = $1`, bert.ID)
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Nothing {
		t.Errorf("%+v", c)
	}
	if more := b.MustFinish(t, c, storetest.Sent); !more {
		t.Error("the finish does not report that bert waits")
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Claimed || c.Push.ID != bert.ID {
		t.Errorf("%+v", c)
	}
	findings, err := b.Audit(t.Context(), quota.Policy{{Name: "minute", Limit: 2, Window: time.Minute}}, storetest.Began.Add(-time.Hour)) // bert: the forged send and this one
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check != "recipient-key" && f.Check != "orphan" { // as was forged
			t.Errorf("audit: %+v", f)
		}
	}
}

package pg_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestBook_CommitUnknown checks that a booking whose commit lost its reply finds its own row when it runs again, and
// returns the push, its usage and its view.
func TestBook_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	b.Booked(t, "anna", 2*time.Hour)
	d := storetest.Draft(b.TenantID, "anna", time.Hour)
	d.Show = true

	w.LoseNext("COMMIT")
	v := storetest.MustBook(t, b.Store, storetest.ThreeRules, d)
	w.WantLost(t, 1)
	if v.Outcome != booking.Booked || v.Push.ID != d.Push.ID || !v.Push.SendAt.Equal(d.Push.SendAt) || v.Push.Status != push.Scheduled {
		t.Errorf("%+v", v)
	}
	if len(v.Bookings) != 2 {
		t.Errorf("the view shows %v", v.Bookings)
	}
	want := []quota.Usage{{Rule: storetest.ThreeRules[0], Used: 1}, {Rule: storetest.ThreeRules[1], Used: 1, Remaining: 4}, {Rule: storetest.ThreeRules[2], Used: 2, Remaining: 8}}
	if diff := cmp.Diff(want, v.Usage); diff != "" {
		t.Error(diff)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestBook_BatchCommitUnknown checks that a batch whose commit lost its reply finds its own rows.
func TestBook_BatchCommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	o := booking.Order{Policy: storetest.ThreeRules, Drafts: []booking.Draft{
		storetest.Draft(b.TenantID, "anna", time.Hour), storetest.Draft(b.TenantID, "anna", time.Hour), storetest.MustKeyed(b.TenantID, "bert", "k", "body", time.Hour),
	}}
	w.LoseNext("COMMIT")
	v, err := b.Book(t.Context(), o)
	w.WantLost(t, 1)
	if err != nil || v[0].Outcome != booking.Booked || v[1].Outcome != booking.NoPlace || v[2].Outcome != booking.Replayed {
		t.Fatalf("%+v, %v", v, err)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestChange_CommitUnknown checks that a move and a cancel whose commits lost their replies report success.
func TestChange_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.Booked(t, "anna", time.Hour)
	p.SendAt = p.SendAt.Add(time.Hour)
	w.LoseNext("COMMIT")
	v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: storetest.ThreeRules})
	w.WantLost(t, 1)
	if err != nil || v.Outcome != booking.Booked || !b.MustRead(t, p).SendAt.Equal(p.SendAt) {
		t.Errorf("moved: %+v, %v", v, err)
	}

	w.LoseNext("UPDATE 0") // the last statement is about the table crowds
	canceled, err := b.Cancel(t.Context(), b.TenantID, p.ID)
	w.WantLost(t, 2)
	if err != nil || canceled.Status != push.Canceled {
		t.Errorf("canceled: %+v, %v", canceled, err)
	}
}

// TestDescribe_CommitUnknown checks that a description whose commit lost its reply returns the usual answer: whether it
// is new, and the canceled pushes.
func TestDescribe_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	b.Booked(t, "anna", time.Hour)
	for lost, row := range []struct{ created, canceled int }{{1, 1}, {0, 0}} {
		w.LoseNext("COMMIT")
		got := b.Say(t, booking.Description{Recipient: "anna", OptOuts: booking.OptOuts{All: true}})
		w.WantLost(t, lost+1)
		if got.Created != (row.created == 1) || got.Pushes != row.canceled || len(got.Days) != row.canceled || got.UpdatedAt.IsZero() {
			t.Errorf("%+v, want %+v", got, row)
		}
	}
}

// TestClaim_CommitUnknown checks that a claim whose commit lost its reply finds its own attempt. A lost attempt would
// block the recipient until the lease expires.
func TestClaim_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.Booked(t, "anna", 0)
	w.LoseNext("COMMIT")
	c := b.MustClaim(t, "anna", storetest.ThreeRules)
	w.WantLost(t, 1)
	if c.Outcome != booking.Claimed || c.Push.ID != p.ID || c.Attempt != 1 || c.Token == uuid.Nil || c.LeaseUntil.Sub(c.StartedAt) != time.Minute {
		t.Fatalf("%+v", c)
	}
	if other := b.MustClaim(t, "anna", storetest.ThreeRules); other.Outcome != booking.Nothing {
		t.Errorf("claimed twice: %+v", other)
	}

	w.LoseNext("SELECT 1")
	b.MustFinish(t, c, storetest.Sent)
	w.WantLost(t, 2)
	if got := b.MustRead(t, p); got.Status != push.Sent || got.Attempts != 1 || len(got.Sends) != 1 || got.Sends[0].Outcome != push.Delivered {
		t.Errorf("%+v", got)
	}
}

// TestFinish_CommitUnknown checks that a finish whose commit lost its reply still reports that another push waits.
func TestFinish_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	first := b.Booked(t, "anna", -time.Minute)
	c := b.Claimed(t, first)
	b.Booked(t, "anna", -time.Second)
	if other := b.MustClaim(t, "anna", nil); other.Outcome != booking.Nothing {
		t.Fatalf("%+v", other)
	}
	w.LoseNext("SELECT 1")
	if more := b.MustFinish(t, c, storetest.Sent); !more {
		t.Error("the finish does not report that another push waits")
	}
	w.WantLost(t, 1)
}

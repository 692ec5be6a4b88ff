package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// setupProxy is a bundle whose store talks to Postgres through a proxy.
func setupProxy(t *testing.T) (*bundle, *lossy) {
	t.Helper()
	return throughProxy(t, setup(t))
}

func throughProxy(t *testing.T, b *bundle) (*bundle, *lossy) {
	t.Helper()
	w := newProxy(t, b.url)
	b.Store = openURL(t, w.url, store.Config{})
	return b, w
}

// TestBook_CommitUnknown: a booking whose commit gets no reply finds its own row when it runs again, and answers with
// the push, its usage and its view.
func TestBook_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	b.booked(t, "anna", 2*time.Hour)
	d := draft(b.tenant, "anna", time.Hour)
	d.Show = true

	w.loseNext("COMMIT")
	v := book(t, b.Store, threeRules, d)
	w.wantLost(t, 1)
	if v.Outcome != booking.Booked || v.Push.ID != d.Push.ID || !v.Push.SendAt.Equal(d.Push.SendAt) || v.Push.Status != push.Scheduled {
		t.Errorf("%+v", v)
	}
	if len(v.Bookings) != 2 {
		t.Errorf("the view shows %v", v.Bookings)
	}
	want := []quota.Usage{{Rule: threeRules[0], Used: 1}, {Rule: threeRules[1], Used: 1, Remaining: 4}, {Rule: threeRules[2], Used: 2, Remaining: 8}}
	if diff := cmp.Diff(want, v.Usage); diff != "" {
		t.Error(diff)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.tenant); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestBook_BatchCommitUnknown: a batch whose commit gets no reply finds its own rows.
func TestBook_BatchCommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	o := booking.Order{Policy: threeRules, Drafts: []booking.Draft{
		draft(b.tenant, "anna", time.Hour), draft(b.tenant, "anna", time.Hour), keyed(b.tenant, "bert", "k", "body", time.Hour),
	}}
	w.loseNext("COMMIT")
	v, err := b.Book(t.Context(), o)
	w.wantLost(t, 1)
	if err != nil || v[0].Outcome != booking.Booked || v[1].Outcome != booking.NoPlace || v[2].Outcome != booking.Replayed {
		t.Fatalf("%+v, %v", v, err)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.tenant); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestChange_CommitUnknown: a move and a cancel whose commits get no reply report success.
func TestChange_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.booked(t, "anna", time.Hour)
	p.SendAt = p.SendAt.Add(time.Hour)
	w.loseNext("COMMIT")
	v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: threeRules})
	w.wantLost(t, 1)
	if err != nil || v.Outcome != booking.Booked || !b.read(t, p).SendAt.Equal(p.SendAt) {
		t.Errorf("moved: %+v, %v", v, err)
	}

	w.loseNext("UPDATE 0") // the last statement is about the table crowds
	canceled, err := b.Cancel(t.Context(), b.tenant, p.ID)
	w.wantLost(t, 2)
	if err != nil || canceled.Status != push.Canceled {
		t.Errorf("canceled: %+v, %v", canceled, err)
	}
}

// TestDescribe_CommitUnknown: a description whose commit gets no reply answers as it would have: whether it is new, and what it has
// canceled.
func TestDescribe_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	b.booked(t, "anna", time.Hour)
	for lost, row := range []struct{ created, canceled int }{{1, 1}, {0, 0}} {
		w.loseNext("COMMIT")
		got := b.say(t, booking.Description{Recipient: "anna", OptOuts: booking.OptOuts{All: true}})
		w.wantLost(t, lost+1)
		if got.Created != (row.created == 1) || got.Pushes != row.canceled || len(got.Days) != row.canceled || got.UpdatedAt.IsZero() {
			t.Errorf("%+v, want %+v", got, row)
		}
	}
}

// TestClaim_CommitUnknown: a claim whose commit gets no reply finds its own attempt. Lost, it would block the recipient
// until the lease ends.
func TestClaim_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.booked(t, "anna", 0)
	w.loseNext("COMMIT")
	c := b.claim(t, "anna", threeRules)
	w.wantLost(t, 1)
	if c.Outcome != booking.Claimed || c.Push.ID != p.ID || c.Attempt != 1 || c.Token == uuid.Nil || c.LeaseUntil.Sub(c.StartedAt) != time.Minute {
		t.Fatalf("%+v", c)
	}
	if other := b.claim(t, "anna", threeRules); other.Outcome != booking.Nothing {
		t.Errorf("claimed twice: %+v", other)
	}

	w.loseNext("SELECT 1")
	b.finish(t, c, sent)
	w.wantLost(t, 2)
	if got := b.read(t, p); got.Status != push.Sent || got.Attempts != 1 || len(got.Sends) != 1 || got.Sends[0].Outcome != push.Delivered {
		t.Errorf("%+v", got)
	}
}

// TestFinish_CommitUnknown: a finish whose commit gets no reply still reports that another push waits.
func TestFinish_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	first := b.booked(t, "anna", -time.Minute)
	c := b.claimed(t, first)
	b.booked(t, "anna", -time.Second)
	if other := b.claim(t, "anna", nil); other.Outcome != booking.Nothing {
		t.Fatalf("%+v", other)
	}
	w.loseNext("SELECT 1")
	if more := b.finish(t, c, sent); !more {
		t.Error("the finish does not report that another push waits")
	}
	w.wantLost(t, 1)
}

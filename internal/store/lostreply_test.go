package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// setupProxy is a bundle whose store talks to Postgres through a proxy.
func setupProxy(t *testing.T) (*bundle, *lossy) {
	t.Helper()
	b := setup(t)
	w := newProxy(t, b.url)
	b.Store = openURL(t, w.url, store.Config{})
	return b, w
}

// TestBookWhoseCommitIsUnknown finds what it has committed, and answers as if
// nothing had happened: with the push, its usage and its view.
func TestBookWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	b.booked(t, "anna", 2*time.Hour)
	d := draft(b.tenant, "anna", time.Hour)
	d.Since = time.Now().Add(-time.Hour)

	w.loseNext("COMMIT")
	v := book(t, b.Store, threeRules, d)
	w.wantLost(t, 1)
	if v.Outcome != store.Booked || v.Push.ID != d.Push.ID || !v.Push.SendAt.Equal(d.Push.SendAt) || v.Push.Status != push.Scheduled {
		t.Errorf("%+v", v)
	}
	if len(v.View.Bookings()) != 2 {
		t.Errorf("the view shows %v", v.View.Bookings())
	}
	want := []quota.Usage{{Rule: threeRules[0], Used: 1}, {Rule: threeRules[1], Used: 1, Remaining: 4}, {Rule: threeRules[2], Used: 2, Remaining: 8}}
	if diff := cmp.Diff(want, v.Usage); diff != "" {
		t.Error(diff)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes`); n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestBatchWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	o := store.Order{Policy: threeRules, Drafts: []store.Draft{
		draft(b.tenant, "anna", time.Hour), draft(b.tenant, "anna", time.Hour), keyed(b.tenant, "bert", "k", "body", time.Hour),
	}}
	w.loseNext("COMMIT")
	v, err := b.Book(t.Context(), o)
	w.wantLost(t, 1)
	if err != nil || v[0].Outcome != store.Booked || v[1].Outcome != store.Refused || v[2].Outcome != store.Replayed {
		t.Fatalf("%+v, %v", v, err)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes`); n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestChangesWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.booked(t, "anna", time.Hour)
	p.SendAt = p.SendAt.Add(time.Hour)
	w.loseNext("COMMIT")
	v, err := b.Reschedule(t.Context(), store.Order{Drafts: []store.Draft{{Push: p}}, Policy: threeRules})
	w.wantLost(t, 1)
	if err != nil || v.Outcome != store.Booked || !b.read(t, p).SendAt.Equal(p.SendAt) {
		t.Errorf("moved: %+v, %v", v, err)
	}

	w.loseNext("UPDATE 0") // the last statement is about the table crowds
	canceled, err := b.Cancel(t.Context(), b.tenant, p.ID)
	w.wantLost(t, 2)
	if err != nil || canceled.Status != push.Canceled {
		t.Errorf("canceled: %+v, %v", canceled, err)
	}
}

// TestClaimWhoseCommitIsUnknown must neither be lost, which would block the
// recipient until the lease ends, nor become two.
func TestClaimWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	p := b.booked(t, "anna", 0)
	w.loseNext("COMMIT")
	c := b.claim(t, "anna", threeRules)
	w.wantLost(t, 1)
	if c.Outcome != store.Claimed || c.Push.ID != p.ID || c.Attempt != 1 || c.Token == uuid.Nil || c.LeaseUntil.Sub(c.StartedAt) != time.Minute {
		t.Fatalf("%+v", c)
	}
	if other := b.claim(t, "anna", threeRules); other.Outcome != store.Nothing {
		t.Errorf("claimed twice: %+v", other)
	}

	w.loseNext("SELECT 1")
	b.finish(t, c, sent)
	w.wantLost(t, 2)
	if got := b.read(t, p); got.Status != push.Sent || got.Attempts != 1 || len(got.Sends) != 1 || got.Sends[0].Outcome != push.Delivered {
		t.Errorf("%+v", got)
	}
}

// TestFinishWhoseCommitIsUnknown still knows that another push waits.
func TestFinishWhoseCommitIsUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	first := b.booked(t, "anna", -time.Minute)
	c := b.claimed(t, first)
	b.booked(t, "anna", -time.Second)
	if other := b.claim(t, "anna", nil); other.Outcome != store.Nothing {
		t.Fatalf("%+v", other)
	}
	w.loseNext("SELECT 1")
	if more := b.finish(t, c, sent); !more {
		t.Error("nobody is told that another push waits")
	}
	w.wantLost(t, 1)
}

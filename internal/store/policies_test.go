package store_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// noSends is a policy under which nothing is sent.
func noSends() *policy.Document {
	return &policy.Document{Rules: []policy.Rule{{Name: "never", Limit: new(0), Window: "1m"}}}
}

// TestChangePolicy_CommitUnknown: a change whose commit gets no reply finds its own version, and its operation.
func TestChangePolicy_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	for n, change := range []policy.Change{
		{Document: noSends(), By: "key", If: []int64{0}}, {Document: noSends(), By: "key", If: []int64{1}, Apply: policy.Reslot}, {By: "key", If: []int64{2}, Apply: policy.Cancel},
	} {
		w.loseNext("COMMIT")
		v, op, err := b.ChangePolicy(t.Context(), b.tenant, change)
		w.wantLost(t, n+1)
		if err != nil || v.Number != int64(n+1) || (v.Document == nil) != (change.Document == nil) || op == nil {
			t.Fatalf("%d: %+v, %+v, %v", n, v, op, err)
		}
		if op.Version != v.Number || op.Apply != cmp.Or(change.Apply, policy.NewOnly) || op.Status != policy.Running {
			t.Errorf("%d: %+v", n, op)
		}
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM policies WHERE tenant_id = $1`, b.tenant); n != 3 {
		t.Errorf("%d versions", n)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM policy_operations WHERE status = 'running' AND tenant_id = $1`, b.tenant); n != 1 {
		t.Errorf("%d operations run", n)
	}
	_, _, err := b.ChangePolicy(t.Context(), b.tenant, policy.Change{By: "key", If: []int64{2}})
	if stale, ok := errors.AsType[*policy.StaleError](err); !ok || stale.InForce != 3 {
		t.Errorf("stale: %v", err)
	}
	if _, _, err := b.ChangePolicy(t.Context(), uuid.New(), policy.Change{Document: noSends()}); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("no tenant: %v", err)
	}
}

// TestRefit_CommitUnknown: a step whose commit gets no reply is counted once.
func TestRefit_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := throughProxy(t, setupAlone(t))
	p := b.booked(t, "anna", time.Hour)
	_, op, err := b.ChangePolicy(t.Context(), b.tenant, policy.Change{Document: noSends(), By: "key", Apply: policy.Cancel})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.TakeOperation(t.Context(), uuid.New(), nil)
	if err != nil || r == nil || r.ID != op.ID {
		t.Fatal(r, err)
	}
	if other, err := b.TakeOperation(t.Context(), uuid.New(), nil); err != nil || other != nil {
		t.Errorf("two workers have it: %+v, %v", other, err)
	}
	w.loseNext("COMMIT")
	if _, err := b.Refit(t.Context(), r, "anna", nil, time.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.wantLost(t, 1)
	if got := b.read(t, p); got.Status != push.Canceled || got.LastError != booking.ChangedReason {
		t.Errorf("%+v", got)
	}
	if got, err := b.PolicyOperation(t.Context(), b.tenant, op.ID); err != nil || got.Canceled != 1 || got.Moved != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.PolicyOperation(t.Context(), uuid.New(), op.ID); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}

// TestRefit_UnderWay: what a worker is about to send, or has sent, stays as it is.
func TestRefit_UnderWay(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	waits, due := b.booked(t, "anna", time.Hour), b.booked(t, "anna", -time.Second)
	if c := b.claim(t, "anna", nil); c.Push.ID != due.ID {
		t.Fatalf("%+v", c)
	}
	if _, _, err := b.ChangePolicy(t.Context(), b.tenant, policy.Change{Document: noSends(), By: "key", Apply: policy.Cancel}); err != nil {
		t.Fatal(err)
	}
	r, err := b.TakeOperation(t.Context(), uuid.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	done, err := b.Refit(t.Context(), r, "anna", nil, time.Now().Add(24*time.Hour))
	if err != nil || done.Canceled != 1 || done.More {
		t.Errorf("%+v, %v", done, err)
	}
	b.wantStatus(t, waits, push.Canceled)
	b.wantStatus(t, due, push.Sending)
}

// TestBook_PolicyOfOthers: a process that has a tenant's older policy in mind decides by the one in force, together with other
// tenants in one transaction.
func TestBook_PolicyOfOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := openURL(t, b.url, store.Config{})
	for n := range 6 {
		document, want := noSends(), booking.NoPlace
		if n%2 == 1 {
			document, want = nil, booking.Booked
		}
		if _, _, err := []*store.Store{b.Store, other}[n/2%2].ChangePolicy(t.Context(), b.tenant, policy.Change{Document: document, By: "key"}); err != nil {
			t.Fatal(err)
		}
		for _, st := range []*store.Store{b.Store, other} {
			if v := book(t, st, nil, draft(b.tenant, uuid.NewString(), time.Hour)); v.Outcome != want {
				t.Errorf("change %d: %+v, want %v", n, v, want)
			}
		}
	}
}

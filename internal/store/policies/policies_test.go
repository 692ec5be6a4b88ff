package policies_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestChangePolicy_CommitUnknown checks that a change whose commit lost its reply finds its own version, and its
// operation.
func TestChangePolicy_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := setupProxy(t)
	for n, change := range []policy.Change{
		{Document: storetest.NoSends(), By: "key", If: []int64{0}}, {Document: storetest.NoSends(), By: "key", If: []int64{1}, Apply: policy.Reslot}, {By: "key", If: []int64{2}, Apply: policy.Cancel},
	} {
		w.LoseNext("COMMIT")
		v, op, err := b.ChangePolicy(t.Context(), b.TenantID, change)
		w.WantLost(t, n+1)
		if err != nil || v.Number != int64(n+1) || (v.Document == nil) != (change.Document == nil) || op == nil {
			t.Fatalf("%d: %+v, %+v, %v", n, v, op, err)
		}
		if op.Version != v.Number || op.Apply != cmp.Or(change.Apply, policy.NewOnly) || op.Status != policy.Running {
			t.Errorf("%d: %+v", n, op)
		}
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM policies WHERE tenant_id = $1`, b.TenantID); n != 3 {
		t.Errorf("%d versions", n)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM policy_operations WHERE status = 'running' AND tenant_id = $1`, b.TenantID); n != 1 {
		t.Errorf("%d operations run", n)
	}
	_, _, err := b.ChangePolicy(t.Context(), b.TenantID, policy.Change{By: "key", If: []int64{2}})
	if stale, ok := errors.AsType[*policy.StaleError](err); !ok || stale.InForce != 3 {
		t.Errorf("stale: %v", err)
	}
	if _, _, err := b.ChangePolicy(t.Context(), uuid.New(), policy.Change{Document: storetest.NoSends()}); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("no tenant: %v", err)
	}
}

// TestRefit_CommitUnknown checks that a step whose commit lost its reply is counted once.
func TestRefit_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := throughProxy(t, setupAlone(t))
	p := b.Booked(t, "anna", time.Hour)
	_, op, err := b.ChangePolicy(t.Context(), b.TenantID, policy.Change{Document: storetest.NoSends(), By: "key", Apply: policy.Cancel})
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
	w.LoseNext("COMMIT")
	if _, err := b.Refit(t.Context(), r, "anna", nil, time.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.WantLost(t, 1)
	if got := b.MustRead(t, p); got.Status != push.Canceled || got.LastError != booking.ChangedReason {
		t.Errorf("%+v", got)
	}
	if got, err := b.PolicyOperation(t.Context(), b.TenantID, op.ID); err != nil || got.Canceled != 1 || got.Moved != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.PolicyOperation(t.Context(), uuid.New(), op.ID); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}

// TestRefit_UnderWay checks that pushes that a worker is sending, or has sent, do not change.
func TestRefit_UnderWay(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	waits, due := b.Booked(t, "anna", time.Hour), b.Booked(t, "anna", -time.Second)
	if c := b.MustClaim(t, "anna", nil); c.Push.ID != due.ID {
		t.Fatalf("%+v", c)
	}
	if _, _, err := b.ChangePolicy(t.Context(), b.TenantID, policy.Change{Document: storetest.NoSends(), By: "key", Apply: policy.Cancel}); err != nil {
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
	b.WantStatus(t, waits, push.Canceled)
	b.WantStatus(t, due, push.Sending)
}

// TestBook_PolicyOfOthers checks that a process with an older cached policy of a tenant decides by the policy in force,
// in one transaction with other tenants.
func TestBook_PolicyOfOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := storetest.OpenURL(t, b.URL, store.Config{})
	for n := range 6 {
		document, want := storetest.NoSends(), booking.NoPlace
		if n%2 == 1 {
			document, want = nil, booking.Booked
		}
		if _, _, err := []*store.Store{b.Store, other}[n/2%2].ChangePolicy(t.Context(), b.TenantID, policy.Change{Document: document, By: "key"}); err != nil {
			t.Fatal(err)
		}
		for _, st := range []*store.Store{b.Store, other} {
			if v := storetest.MustBook(t, st, nil, storetest.Draft(b.TenantID, uuid.NewString(), time.Hour)); v.Outcome != want {
				t.Errorf("change %d: %+v, want %v", n, v, want)
			}
		}
	}
}

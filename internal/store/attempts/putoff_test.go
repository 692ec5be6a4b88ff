package attempts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// change sets the tenant's policy; nil returns to the file's.
func (b *bundle) change(t testing.TB, document *policy.Document) *policy.Operation {
	t.Helper()
	_, op, err := b.ChangePolicy(t.Context(), b.TenantID, policy.Change{Document: document, By: "key", Apply: policy.NewOnly})
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// recheck does a worker's part of a policy change, and returns the keys of the recipients that are due again.
func (b *bundle) recheck(t testing.TB) (keys []int64) {
	t.Helper()
	op, err := b.TakeOperation(t.Context(), uuid.New(), nil)
	if err == nil {
		err = b.SettleOperation(t.Context(), op)
	}
	for more := true; more && err == nil; {
		var done booking.Rechecked
		done, err = b.RecheckPutOff(t.Context(), op)
		keys, more = append(keys, done.Recipients...), done.More
	}
	if err == nil {
		err = b.FinishRefitPage(t.Context(), op, booking.RefitPage{Last: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestChangePolicy_PutOff checks that a push that fell due under a wrong policy is due again when the policy is
// reverted. The push keeps the name of the rule that held it, and when that began and ended.
func TestChangePolicy_PutOff(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.Booked(t, "anna", -time.Second)
	if op := b.change(t, storetest.NoSends()); op.PutOff != 0 {
		t.Errorf("%+v", op)
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.PutOff || c.Push.Held.By != "never" || c.Push.Held.Since.IsZero() || !c.Push.Held.Until.Equal(p.ExpiresAt) {
		t.Fatalf("%+v", c)
	}
	p = b.MustRead(t, p)
	if p.Held.By != "never" || !p.NextAt.Equal(p.ExpiresAt) || !p.Held.Until.Equal(p.ExpiresAt) {
		t.Errorf("put off: %+v", p)
	}
	if f, err := b.Flow(t.Context(), b.TenantID); err != nil || f.PutOff != 1 || f.Waiting != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if n, err := b.PutOff(t.Context()); err != nil || n != 1 {
		t.Errorf("%d are put off, %v", n, err)
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Nothing {
		t.Errorf("%+v", c)
	}
	op := b.change(t, nil)
	if op.PutOff != 1 {
		t.Errorf("%+v", op)
	}
	if keys := b.recheck(t); len(keys) != 1 || keys[0] != push.RecipientKey(b.TenantID, "anna") {
		t.Errorf("due again: %v", keys)
	}
	if o, err := b.PolicyOperation(t.Context(), b.TenantID, op.ID); err != nil || o.Rechecked != 1 || o.Status != policy.Finished {
		t.Errorf("%+v, %v", o, err)
	}
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	got := b.MustRead(t, p)
	if got.Status != push.Sent || got.Held.By != "never" || !got.Held.Since.Equal(p.Held.Since) || !got.Held.Until.Before(p.ExpiresAt) || got.Held.Until.Before(got.Held.Since) {
		t.Errorf("sent: %+v", got.Held)
	}
	if f, err := b.Flow(t.Context(), b.TenantID); err != nil || f.PutOff != 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestRecheckFile checks that a worker that starts rechecks the pushes that the operator's file put off, because the
// file may have changed. Tenants with a policy of their own are left alone.
func TestRecheckFile(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	never := quota.Policy{{Name: "never", Limit: 0, Window: time.Minute}}
	p := b.Booked(t, "anna", -time.Second)
	for _, own := range []bool{true, false} {
		if c := b.MustClaim(t, "anna", never); c.Outcome != booking.PutOff {
			t.Fatalf("%+v", c)
		}
		if own {
			b.change(t, &policy.Document{})
			b.recheck(t)
			b.Exec(t, `UPDATE live SET put_off_at = clock_timestamp()`)
		}
		for range 2 { // as several workers would
			if err := b.RecheckFile(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM policy_operations WHERE status = 'running'`); n != map[bool]int{false: 1}[own] {
			t.Errorf("own policy: %t, %d operations run", own, n)
		}
		if own {
			b.change(t, nil)
			b.recheck(t)
		}
	}
	if keys := b.recheck(t); len(keys) != 1 {
		t.Errorf("due again: %v", keys)
	}
	b.Claimed(t, p)
}

// TestChangePolicy_PutOffMany checks that all pushes are due again, in steps. Pushes that the new policy puts off stay
// put off, and a push that waits for a retry is not tried earlier.
func TestChangePolicy_PutOffMany(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{8, 256} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.Store = storetest.OpenURL(t, b.URL, pg.Config{Lanes: lanes})
			again := b.Booked(t, "retry", -time.Second)
			c := b.Claimed(t, again)
			b.MustFinish(t, c, booking.Finish{Outcome: push.Refused, Error: "busy", Resolution: push.Resolution{Status: push.Scheduled, Reason: "busy", Delay: time.Hour}})
			b.change(t, storetest.NoSends())
			const many = 1100
			b.Exec(t, `
				INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, rank, phase, shard, put_off_at)
				SELECT gen_random_uuid(), tenant_id, n, channel, send_at, expires_at, expires_at, 2, 2, 2, n & 255, clock_timestamp()
				FROM live, generate_series(1, $1) n`, many)
			b.Exec(t, `
				INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, plan, shard)
				SELECT push_id, tenant_id, recipient_key, 'user', channel, '{}', send_at, send_at, next_at, expires_at, 'scheduled', plan, shard FROM live
				WHERE put_off_at IS NOT NULL`)
			if op := b.change(t, &policy.Document{}); op.PutOff != many {
				t.Errorf("%+v", op)
			}
			if keys := b.recheck(t); len(keys) != many {
				t.Errorf("%d are due again", len(keys))
			}
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live l JOIN pushes p ON p.id = l.push_id
				WHERE p.next_at = l.next_at AND p.plan = l.plan AND l.next_at <= clock_timestamp() AND l.put_off_at IS NULL`); n != many {
				t.Errorf("%d of %d are as they should be", n, many)
			}
			if p := b.MustRead(t, again); p.NextAt.Before(time.Now().Add(time.Minute)) {
				t.Errorf("the retry is at %s", p.NextAt)
			}
		})
	}
}

// TestDescribe_PutOff checks the same when a recipient gets other limits. A change of other members leaves pushes put
// off.
func TestDescribe_PutOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	describe := func(limits map[string]int, keep booking.Members) int {
		t.Helper()
		all, err := b.Describe(t.Context(), b.TenantID, []booking.Description{{Recipient: "anna", Limits: limits, Keep: keep}})
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Rechecked
	}
	b.change(t, &policy.Document{Rules: []policy.Rule{{Name: "day", Limit: new(10), Window: "24h"}}})
	p := b.Booked(t, "anna", -time.Second)
	if n := describe(map[string]int{"day": 0}, 0); n != 0 {
		t.Errorf("%d are due again", n)
	}
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.PutOff || c.Push.Held.By != "day" {
		t.Fatalf("%+v", c)
	}
	if n := describe(nil, booking.AllMembers&^booking.Attributes); n != 0 {
		t.Errorf("%d are due again after a change of the attributes", n)
	}
	if n := describe(map[string]int{"day": 5}, 0); n != 1 {
		t.Errorf("%d are due again", n)
	}
	b.Claimed(t, p)
}

package pushes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// crowdPolicy allows a recipient very many bookings.
var crowdPolicy = quota.Policy{{Name: "second", Limit: 1, Window: time.Second}, {Name: "day", Limit: 5000, Window: 24 * time.Hour}}

// TestCrowd_EveryChange checks that a process that caches thousands of bookings of a recipient reports an exact usage
// after another process has changed them in every possible way.
func TestCrowd_EveryChange(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	other := storetest.OpenURL(t, b.URL, store.Config{})
	b.Fill(t, "anna", 4000, storetest.Began.Add(time.Hour), 2*time.Second)
	at := 0 // every requested time is a free second
	free := func() booking.Draft {
		at++
		return storetest.Draft(b.TenantID, "anna", time.Hour+time.Duration(2*at-1)*time.Second)
	}
	used := func(st *store.Store) int {
		t.Helper()
		v := storetest.MustBook(t, st, crowdPolicy, free())
		if v.Outcome != booking.Booked {
			t.Fatalf("%+v", v)
		}
		return v.Usage[1].Used
	}
	used(b.Store) // notices that there are many
	if n := used(b.Store); n != 4002 {
		t.Fatalf("%d are used, want 4002", n)
	}

	mine := free()
	storetest.MustBook(t, other, crowdPolicy, mine)
	if n := used(b.Store); n != 4004 {
		t.Errorf("another process booked: %d are used, want 4004", n)
	}
	sparse := storetest.Draft(b.TenantID, "anna", 20*time.Hour) // few bookings are near it under this policy: it shares a transaction
	if v := storetest.MustBook(t, other, quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}, sparse); v.Outcome != booking.Booked {
		t.Fatalf("%+v", v)
	}
	if n := used(b.Store); n != 4006 {
		t.Errorf("another process booked together with others: %d are used, want 4006", n)
	}
	if _, err := other.Cancel(t.Context(), b.TenantID, mine.Push.ID); err != nil {
		t.Fatal(err)
	}
	if n := used(b.Store); n != 4006 {
		t.Errorf("one was canceled: %d are used, want 4006", n)
	}
	sparse.Push.SendAt = storetest.Began.Add(100 * 24 * time.Hour)
	if v, err := other.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{sparse}, Policy: crowdPolicy}); err != nil || v.Outcome != booking.Booked {
		t.Fatalf("%+v, %v", v, err)
	}
	if n := used(b.Store); n != 4006 {
		t.Errorf("one was moved away: %d are used, want 4006", n)
	}
	b.Exec(t, `UPDATE pushes SET next_at = now() - interval '1 hour', expires_at = now() - interval '1 minute' WHERE id = (
		SELECT id FROM pushes WHERE send_at < $1 ORDER BY send_at LIMIT 1)`, storetest.Began.Add(2*time.Hour))
	if ended, err := other.Expire(t.Context(), push.Lanes(1), 10); err != nil || len(ended) != 1 {
		t.Fatalf("%+v, %v", ended, err)
	}
	if n := used(b.Store); n != 4006 {
		t.Errorf("one expired: %d are used, want 4006", n)
	}
	p := push.Push{
		Content: push.Content{Recipient: "anna"},
		ID: storetest.Ask[uuid.UUID](t, b.DB, `UPDATE pushes SET send_at = date_trunc('second', now()), next_at = now() WHERE id = (
		SELECT id FROM pushes WHERE status = 'scheduled' AND send_at < $1 ORDER BY send_at LIMIT 1) RETURNING id`, storetest.Began.Add(2*time.Hour)), Tenant: b.TenantID,
	}
	b.Exec(t, `UPDATE crowds SET version = gen_random_uuid()`) // because of the rows forged just now
	used(b.Store)
	before := used(b.Store)
	b.MustFinish(t, b.Claimed(t, p), booking.Finish{Outcome: push.Refused, Error: "no", Resolution: push.Resolution{Status: push.Failed, Reason: "no"}})
	if n := used(b.Store); n != before {
		t.Errorf("one failed: %d are used, want %d", n, before)
	}
	b.MustAudit(t, crowdPolicy)
}

// TestCrowd_OnePlace checks that two processes that cache the bookings of a crowd together grant no more than the
// limit.
func TestCrowd_OnePlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Fill(t, "anna", 2999, storetest.Began.Add(time.Hour), time.Second)
	policy := quota.Policy{{Name: "day", Limit: 3010, Window: 24 * time.Hour}}
	b.crowd(t, policy, storetest.Draft(b.TenantID, "anna", 2*time.Hour))
	var drafts []booking.Draft
	for i := range 64 {
		drafts = append(drafts, storetest.Draft(b.TenantID, "anna", 2*time.Hour+time.Duration(i)*time.Second))
	}
	if n := storetest.Outcomes(b.crowd(t, policy, drafts...)); n[booking.Booked] != 10 || n[booking.NoPlace] != 54 {
		t.Errorf("decisions %v", n)
	}
	b.MustAudit(t, policy)
}

// TestCrowd_FullBatch books a thousand pushes for one recipient under a rule of a thousand a day. Testing each of them
// against each run of a thousand took longer than the timeout of a transaction.
func TestCrowd_FullBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Store = storetest.OpenURL(t, b.URL, pg.Config{Timeout: 15 * time.Second}) // that test takes still longer, and this one a tenth of it
	policy := quota.Policy{{Name: "day", Limit: 1000, Window: 24 * time.Hour}}
	o := booking.Order{Policy: policy}
	for i := range 1000 {
		o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, "anna", time.Hour+time.Duration(i*37%1000)*time.Second))
	}
	v, err := b.Book(t.Context(), o)
	if err != nil || storetest.Outcomes(v)[booking.Booked] != 1000 {
		t.Fatalf("%v, %v", storetest.Outcomes(v), err)
	}
	for i := range o.Drafts {
		o.Drafts[i].Push.ID = uuid.New()
	}
	if v, err = b.Book(t.Context(), o); err != nil || storetest.Outcomes(v)[booking.NoPlace] != 1000 {
		t.Fatalf("again: %v, %v", storetest.Outcomes(v), err)
	}
	if got := v[0]; len(got.Quota.Violations[0].Conflicts) != quota.MaxConflicts || got.Quota.Violations[0].Omitted != 900 || !got.Complete {
		t.Errorf("%+v", got)
	}
	b.MustAudit(t, policy)
}

// TestBook_SkipsLockedRecipients checks that a transaction that hangs with the lock of one recipient delays neither the
// bookings nor the deliveries of other recipients.
func TestBook_SkipsLockedRecipients(t *testing.T) {
	t.Parallel()
	b := setup(t)
	others := b.Booked(t, "bert", 0)
	tx, err := b.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, push.RecipientKey(b.TenantID, "anna")); err != nil {
		t.Fatal(err)
	}
	waits := make(chan booking.Decision, 1)
	go func() {
		v, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.Draft(b.TenantID, "anna", time.Hour)}, Policy: storetest.ThreeRules})
		if err != nil {
			t.Error(err)
		}
		waits <- slices.Concat(v, []booking.Decision{{}})[0]
	}()
	b.Waiting(t, 1)
	for i := range 20 {
		if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(uuid.New(), "carl", time.Duration(i)*time.Hour)); v.Outcome != booking.Booked {
			t.Errorf("%+v", v)
		}
	}
	if c := b.MustClaim(t, "anna", storetest.ThreeRules); c.Outcome != booking.Wait {
		t.Errorf("the claim for the locked recipient: %+v", c)
	}
	b.MustFinish(t, b.Claimed(t, others), storetest.Sent)
	if len(waits) != 0 {
		t.Error("it was booked without its lock")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := <-waits; v.Outcome != booking.Booked {
		t.Errorf("%+v", v)
	}
}

// TestBook_LongTransactionsPerTenant checks that a tenant has two long transactions at a time while it is alone, and
// one while another tenant books.
func TestBook_LongTransactionsPerTenant(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	tx, err := b.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	var batches sync.WaitGroup
	defer batches.Wait()
	defer tx.Rollback(context.Background())
	loud := func(tenant uuid.UUID, recipient string) {
		if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, push.RecipientKey(tenant, recipient)); err != nil {
			t.Fatal(err)
		}
		batches.Go(func() {
			both := []booking.Draft{storetest.Draft(tenant, recipient, time.Hour), storetest.Draft(tenant, recipient, 2*time.Hour)}
			if _, err := b.Book(context.Background(), booking.Order{Drafts: both, Policy: storetest.ThreeRules}); err != nil {
				t.Error(err)
			}
		})
	}
	loud(b.TenantID, "anna")
	loud(b.TenantID, "bert")
	b.Waiting(t, 2)

	calm, other := uuid.New(), uuid.New()
	for i, recipient := range []string{"carl", "dora", "emil"} {
		storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(calm, "calm", time.Duration(i)*time.Hour))
		loud(other, recipient)
	}
	b.Waiting(t, 3)
	for i := range 20 {
		storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(calm, "calm", time.Duration(10+i)*time.Hour))
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); n != 3 {
			t.Errorf("%d transactions wait, want two of the tenant that was alone, and one of the other", n)
		}
	}
}

// TestCrowd_NoParallelWorkers checks that a server that considers parallel plans cheap makes none for the programs.
// Starting a parallel worker takes longer than a submit for a crowd.
func TestCrowd_NoParallelWorkers(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for _, cost := range []string{"parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size", "min_parallel_index_scan_size"} {
		b.Exec(t, fmt.Sprintf(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = 0', current_database()); END $$`, cost))
	}
	st := storetest.OpenURL(t, b.URL, store.Config{})
	b.Fill(t, "anna", 2000, storetest.Began.Add(time.Hour), 2*time.Second)

	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			v := storetest.MustBook(t, st, crowdPolicy, storetest.Draft(b.TenantID, "anna", 3*time.Hour+time.Duration(i)*time.Second))
			if _, err := st.Push(t.Context(), b.TenantID, v.Push.ID); v.Outcome == booking.Booked && err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if n := storetest.Ask[int](t, b.Watch, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'parallel worker'`); n > 0 {
			t.Errorf("%d parallel workers", n)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// BenchmarkCrowd books for a recipient with 100,000 bookings that a rule counts: `go test ./internal/store/pushes -run
// xxx -bench Crowd`.
func BenchmarkCrowd(b *testing.B) {
	s := setupNew(b)
	s.Fill(b, "anna", 100_000, storetest.Began.Add(time.Hour), 2*time.Second)
	policy := quota.Policy{{Name: "day", Limit: 100_000, Window: 24 * time.Hour}, {Name: "year", Limit: 100_000_000, Window: 365 * 24 * time.Hour}}
	n := 0
	next := func() booking.Draft {
		n++
		return storetest.Draft(s.TenantID, "anna", time.Hour+time.Duration(n*7919%100_000*2+1)*time.Second)
	}
	storetest.MustBook(b, s.Store, policy, next())
	b.Run("submit", func(b *testing.B) {
		for b.Loop() {
			if v := storetest.MustBook(b, s.Store, policy, next()); v.Outcome != booking.Booked {
				b.Fatalf("%+v", v)
			}
		}
	})
	b.Run("batch of 1000", func(b *testing.B) {
		for b.Loop() {
			o := booking.Order{Policy: policy}
			for range 1000 {
				o.Drafts = append(o.Drafts, next())
			}
			if v, err := s.Book(b.Context(), o); err != nil || v[999].Outcome != booking.Booked {
				b.Fatal(err)
			}
		}
	})
	b.Run("refusal", func(b *testing.B) {
		full := quota.Policy{{Name: "day", Limit: 40_000, Window: 24 * time.Hour}}
		for b.Loop() {
			if v := storetest.MustBook(b, s.Store, full, next()); v.Outcome != booking.NoPlace {
				b.Fatalf("%+v", v)
			}
		}
	})
}

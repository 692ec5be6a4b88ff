package pushes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestIdempotencyKey_ThirtyDays checks that a key is known for 30 days, whatever the state of its push, and is free
// again afterwards.
func TestIdempotencyKey_ThirtyDays(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `SELECT make_partitions('idempotency', now() - interval '40 days', now())`)
	again := func(request string) booking.Decision {
		t.Helper()
		return storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.MustKeyed(b.TenantID, "anna", "k", request, time.Hour))
	}
	age := func(to string) {
		t.Helper()
		b.Exec(t, `UPDATE idempotency SET created_at = clock_timestamp() - $1::interval`, to)
	}
	first := again("body")
	if first.Outcome != booking.Booked {
		t.Fatalf("%+v", first)
	}
	at := first.Push.SendAt.AddDate(0, 0, 15)
	to := b.MustRead(t, first.Push)
	to.SendAt, to.RequestedSendAt = at, at
	if _, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: to}}, Policy: storetest.ThreeRules}); err != nil {
		t.Fatal(err)
	}
	age("29 days 23 hours 59 minutes")
	if v := again("body"); v.Outcome != booking.Replayed || v.Push.ID != first.Push.ID || !v.Push.SendAt.Equal(at) || v.Push.IdempotencyID != first.Push.IdempotencyID {
		t.Errorf("moved to another week: %+v", v)
	}
	if v := again("another body"); v.Outcome != booking.KeyReused {
		t.Errorf("another body: %+v", v)
	}
	if _, err := b.Cancel(t.Context(), b.TenantID, first.Push.ID); err != nil {
		t.Fatal(err)
	}
	if v := again("body"); v.Outcome != booking.Replayed || v.Push.Status != push.Canceled {
		t.Errorf("ended: %+v", v)
	}
	b.Exec(t, `DELETE FROM pushes`)
	if v := again("body"); v.Outcome != booking.Gone || v.Push.ID != first.Push.ID {
		t.Errorf("gone: %+v", v)
	}
	if v := again("another body"); v.Outcome != booking.KeyReused {
		t.Errorf("gone, and another body: %+v", v)
	}
	b.MustAudit(t, storetest.ThreeRules)
	age("30 days 1 second")
	if v := again("another body"); v.Outcome != booking.Booked || v.Push.ID == first.Push.ID {
		t.Errorf("after 30 days: %+v", v)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM idempotency`); n != 2 {
		t.Errorf("%d rows", n)
	}
	b.MustAudit(t, storetest.ThreeRules)
}

// TestIdempotencyKey_WhileMoved repeats a request while its push is moved to other weeks and back. Each answer has the
// push.
func TestIdempotencyKey_WhileMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour)
	p := storetest.MustBook(t, b.Store, storetest.ThreeRules, d).Push
	moved := make(chan error, 1)
	go func() {
		for n := range 60 {
			if err := b.Move(b.Store, p, storetest.Monday(1+n%3)); err != nil {
				moved <- err
				return
			}
		}
		moved <- nil
	}()
	for repeated := 0; ; repeated++ {
		if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, d); v.Outcome != booking.Replayed || v.Push.ID != p.ID {
			t.Fatalf("%+v", v)
		}
		if got, err := b.Push(t.Context(), b.TenantID, p.ID); err != nil || got.ID != p.ID {
			t.Fatalf("%+v, %v", got, err)
		}
		select {
		case err := <-moved:
			if err != nil || repeated < 10 {
				t.Fatalf("%v, repeated %d times", err, repeated)
			}
			b.MustAudit(t, storetest.ThreeRules)
			return
		default:
		}
	}
}

// TestIdempotencyKey_WrongClock checks that a program with a clock that is wrong by weeks still knows the keys.
func TestIdempotencyKey_WrongClock(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for name, ahead := range map[string]time.Duration{"behind": -8 * 24 * time.Hour, "ahead": 40 * 24 * time.Hour} {
		if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.MustKeyed(b.TenantID, name, name, "body", time.Hour)); v.Outcome != booking.Booked {
			t.Fatalf("%s: %+v", name, v)
		}
		url, at := b.URL, time.Now().Add(ahead)
		again := storetest.MustKeyed(b.TenantID, name, name, "body", time.Hour) // not within: the ids of all tests would follow that clock
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(at)) // by the clock of the bubble, which stands still while Postgres works
			st, err := store.Open(t.Context(), url, pg.Config{Lanes: *storetest.Lanes})
			if err != nil {
				t.Fatal(err)
			}
			defer time.Sleep(time.Second) // so that what gathers for commits ends
			defer st.Close()
			if v := storetest.MustBook(t, st, storetest.ThreeRules, again); v.Outcome != booking.Replayed {
				t.Errorf("%s: %+v", name, v)
			}
			if made, err := st.Keyed(t.Context(), b.TenantID, again.Push.IdempotencyID); err != nil || len(made) != 1 {
				t.Errorf("%s: %+v, %v", name, made, err)
			}
		})
	}
}

// TestIdempotencyKey_NoPartition checks that a booking under a key succeeds although no partition for the key was made
// ahead.
func TestIdempotencyKey_NoPartition(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `DROP TABLE idempotency`+time.Now().UTC().Truncate(7*24*time.Hour).Format("_20060102"))
	if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour)); v.Outcome != booking.Booked {
		t.Fatalf("%+v", v)
	}
	if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour)); v.Outcome != booking.Replayed {
		t.Fatalf("%+v", v)
	}
}

// TestIdempotencyKey_Locks checks that a booking under a key locks only the partitions of the few weeks that keys are
// kept for. A booking without a key locks none of them.
func TestIdempotencyKey_Locks(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `SELECT make_partitions('idempotency', now() - interval '1 year', now() + interval '1 year')`)
	for key, most := range map[string]int{"": 0, "k": 12} { // six tables with an index each
		d := storetest.Draft(b.TenantID, "anna", time.Hour)
		if key != "" {
			d = storetest.MustKeyed(b.TenantID, "bert", key, "body", time.Hour)
		}
		b.Store = storetest.OpenURL(t, b.URL, store.Config{})
		b.Exec(t, `BEGIN; LOCK TABLE pushes IN SHARE MODE`) // other transactions can still read it
		done := make(chan booking.Outcome)
		go func() { done <- storetest.MustBook(t, b.Store, storetest.ThreeRules, d).Outcome }()
		b.Waiting(t, 1)
		n := storetest.Ask[int](t, b.Watch, `
			SELECT count(DISTINCT l.relation) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a USING (pid)
			WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND a.application_name = 'sendquota' AND c.relname LIKE 'idempotency%'`)
		b.Exec(t, `COMMIT`)
		if outcome := <-done; outcome != booking.Booked || n > most || key != "" && n == 0 {
			t.Errorf("key %q: outcome %d, with locks of %d tables and indexes; at most %d", key, outcome, n, most)
		}
	}
}

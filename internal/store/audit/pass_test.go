package audit_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// forgetAudits makes the next pass begin as on a new database.
func (b *bundle) forgetAudits(t testing.TB) {
	t.Helper()
	b.Exec(t, `DELETE FROM audited`)
	b.Exec(t, `UPDATE audit_pass SET owner = NULL, owned_until = '-infinity', state = NULL, last = NULL`)
}

// beginAudit takes or begins a pass of an hour back and a day ahead, with a number of recipients per chunk; 0 leaves
// the size to the pass.
func (b *bundle) beginAudit(t testing.TB, policy quota.Policy, recipients int) *audit.Pass {
	t.Helper()
	return b.beginPlan(t, booking.AuditPlan{Policy: policy, Back: policy.Reach() + time.Hour, Ahead: 24 * time.Hour}, recipients)
}

// beginPlan takes or begins a pass, with a number of recipients per chunk; 0 leaves the size to the pass.
func (b *bundle) beginPlan(t testing.TB, plan booking.AuditPlan, recipients int) *audit.Pass {
	t.Helper()
	p, err := b.BeginAudit(t.Context(), uuid.New(), plan)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	b.cut(t, p, recipients)
	return p
}

// cut makes a pass read a number of recipients per chunk; 0 changes nothing.
func (b *bundle) cut(t testing.TB, p *audit.Pass, recipients int) {
	t.Helper()
	if recipients > 0 {
		p.CutAt(storetest.Ask[[]int64](t, b.DB, `
			SELECT coalesce(array_agg(k ORDER BY k) FILTER (WHERE (i - 1) % $1 = 0), '{}') FROM (
				SELECT k, row_number() OVER (ORDER BY k) AS i
				FROM (SELECT recipient_key FROM pushes UNION SELECT recipient_key FROM sends UNION SELECT recipient_key FROM live) keys (k)
			) keys`, recipients))
	}
}

// TestAuditSince_Alone checks that AuditSince needs no worker's pass, takes none, and writes nothing.
func TestAuditSince_Alone(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.Booked(t, "anna", time.Hour)
	b.Exec(t, `UPDATE pushes SET next_at = send_at - interval '1 second' WHERE id = $1`, p.ID)
	workers := b.beginAudit(t, storetest.PerMinute, 0)
	readOnly := storetest.OpenURL(t, b.URL+"&default_transaction_read_only=on", store.Config{})
	if found := storetest.FinishAudit(t, readOnly.AuditSince(storetest.PerMinute, booking.Kept{}, time.Time{})); !only(found, p) {
		t.Errorf("found %+v", found)
	}
	if found := storetest.FinishAudit(t, workers); !only(found, p) {
		t.Errorf("the workers found %+v", found)
	}
}

// TestAuditSince_LockedTable checks that the audit waits for a table that is locked for longer than the timeout of a
// chunk.
func TestAuditSince_LockedTable(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.Booked(t, "anna", time.Hour)
	b.Exec(t, `UPDATE pushes SET next_at = send_at - interval '1 second' WHERE id = $1`, p.ID)
	pass := b.AuditSince(storetest.PerMinute, booking.Kept{}, time.Time{})
	held := make(chan error, 1)
	go func() { // until a statement has waited for longer than that
		_, err := b.Watch.Exec(t.Context(), `DO $$ BEGIN
			LOCK TABLE sends;
			LOOP
				PERFORM pg_stat_clear_snapshot();
				EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota'
					AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '5 s');
				PERFORM pg_sleep(0.05);
			END LOOP; END $$`)
		held <- err
	}()
	storetest.Eventually(t, "the table is locked", func() bool {
		return storetest.Ask[bool](t, b.DB, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'sends'::regclass AND mode = 'AccessExclusiveLock' AND granted)`)
	})
	if found := storetest.FinishAudit(t, pass); !only(found, p) {
		t.Errorf("found %+v", found)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// auditInChunks audits everything, with a number of recipients per chunk; 0 leaves the size to the pass.
func (b *bundle) auditInChunks(t testing.TB, file booking.Terms, recipients int) []audit.Finding {
	t.Helper()
	p := b.AuditSince(file, booking.Kept{}, time.Time{})
	b.cut(t, p, recipients)
	return storetest.FinishAudit(t, p)
}

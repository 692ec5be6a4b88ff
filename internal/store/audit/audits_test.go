package audit_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// audits lists the audits of a tenant.
func (b *bundle) audits(t *testing.T, tenant uuid.UUID, before time.Time, limit int) booking.AuditPage {
	t.Helper()
	page, err := b.Audits(t.Context(), tenant, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestAudits_OwnFindings checks that each ended pass is listed with its findings for the tenant, and with none for
// others.
func TestAudits_OwnFindings(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	other, _, err := b.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	b.forgetAudits(t)
	b.Exec(t, `INSERT INTO audits (began_at, ended_at, complete) SELECT at, at, true FROM (SELECT clock_timestamp() - interval '91 days' AS at) a`)
	b.Exec(t, `INSERT INTO audit_findings (tenant_id, began_at, check_name, violations, pushes) SELECT $1, began_at, 'lost', 1, '{}' FROM audits`, [16]byte(other))
	pushes := []push.Push{b.InStatus(t, "anna", push.Failed), b.InStatus(t, "bert", push.Failed)}
	if all := storetest.FinishAudit(t, b.beginAudit(t, storetest.PerMinute, 1)); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	b.Exec(t, `UPDATE pushes SET last_error = ''`)
	p := b.beginAudit(t, storetest.PerMinute, 1)
	if page := b.audits(t, b.TenantID, time.Time{}, 10); len(page.Audits) != 1 { // a running pass is not listed; the oldest one is forgotten
		t.Errorf("%+v", page)
	}
	if all := storetest.FinishAudit(t, p); len(all) != 2 {
		t.Fatalf("%+v", all)
	}

	page := b.audits(t, b.TenantID, time.Time{}, 10)
	if len(page.Audits) != 2 || !page.Next.IsZero() {
		t.Fatalf("%+v", page)
	}
	last, first := page.Audits[0], page.Audits[1]
	if !last.Began.Equal(p.Result().Began) || !last.Ended.Equal(p.Result().Ended) || !last.Complete || !first.Began.Before(last.Began) || len(first.Found) != 0 {
		t.Errorf("%+v", page)
	}
	f := last.Found["no-reason"]
	if len(last.Found) != 1 || f == nil || f.Violations != 2 || len(f.Pushes) != 2 || f.Pushes[0] != pushes[0].ID && f.Pushes[1] != pushes[0].ID {
		t.Errorf("%+v", last.Found)
	}
	others := b.audits(t, other, time.Time{}, 10)
	if len(others.Audits) != 2 || len(others.Audits[0].Found)+len(others.Audits[1].Found) != 0 {
		t.Errorf("%+v", others)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM audit_findings`); n != 1 {
		t.Errorf("%d findings", n)
	}

	one := b.audits(t, b.TenantID, time.Time{}, 1)
	two := b.audits(t, b.TenantID, one.Next, 1)
	if diff := cmp.Diff(page.Audits, append(one.Audits, two.Audits...)); diff != "" || !two.Next.IsZero() {
		t.Errorf("%s, next %s", diff, two.Next)
	}
}

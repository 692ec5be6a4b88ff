package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// forgetAudits has the next pass begin as on a new database.
func (b *bundle) forgetAudits(t testing.TB) {
	t.Helper()
	b.exec(t, `TRUNCATE audited`)
	b.exec(t, `UPDATE audit_pass SET owner = NULL, owned_until = '-infinity', state = NULL, last = NULL`)
}

// beginAudit takes or begins a pass of an hour back and a day ahead.
func (b *bundle) beginAudit(t testing.TB, policy quota.Policy, rows int) *store.AuditPass {
	t.Helper()
	p, err := b.BeginAudit(t.Context(), uuid.New(), booking.AuditPlan{Policy: policy, Back: policy.Reach() + time.Hour, Ahead: 24 * time.Hour, Rows: rows})
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	return p
}

// finishAudit carries a pass to its end, and returns what it finds.
func finishAudit(t testing.TB, p *store.AuditPass) (all []store.Finding) {
	t.Helper()
	for !p.Over() {
		c, own, err := p.Next(t.Context(), func(f store.Finding) { all = append(all, f) })
		if err != nil || !own || c.Skipped != uuid.Nil {
			t.Fatal(c, own, err)
		}
	}
	return all
}

// auditInChunks makes a first pass, with chunks of so many rows.
func (b *bundle) auditInChunks(t testing.TB, policy quota.Policy, rows int) []store.Finding {
	t.Helper()
	b.forgetAudits(t)
	return finishAudit(t, b.beginAudit(t, policy, rows))
}

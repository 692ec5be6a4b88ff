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
	b.exec(t, `DELETE FROM audited`)
	b.exec(t, `UPDATE audit_pass SET owner = NULL, owned_until = '-infinity', state = NULL, last = NULL`)
}

// beginAudit takes or begins a pass of an hour back and a day ahead, in chunks of so many recipients; 0: as they come.
func (b *bundle) beginAudit(t testing.TB, policy quota.Policy, recipients int) *store.AuditPass {
	t.Helper()
	return b.beginPlan(t, booking.AuditPlan{Policy: policy, Back: policy.Reach() + time.Hour, Ahead: 24 * time.Hour}, recipients)
}

// beginPlan takes or begins a pass, in chunks of so many recipients; 0: as they come.
func (b *bundle) beginPlan(t testing.TB, plan booking.AuditPlan, recipients int) *store.AuditPass {
	t.Helper()
	p, err := b.BeginAudit(t.Context(), uuid.New(), plan)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	b.cut(t, p, recipients)
	return p
}

// cut has a pass read so many recipients in each chunk.
func (b *bundle) cut(t testing.TB, p *store.AuditPass, recipients int) {
	t.Helper()
	if recipients > 0 {
		p.CutAt(ask[[]int64](t, b.db, `
			SELECT coalesce(array_agg(k ORDER BY k) FILTER (WHERE (i - 1) % $1 = 0), '{}') FROM (
				SELECT k, row_number() OVER (ORDER BY k) AS i
				FROM (SELECT recipient_key FROM pushes UNION SELECT recipient_key FROM sends UNION SELECT recipient_key FROM live) keys (k)
			) keys`, recipients))
	}
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

// auditInChunks makes a first pass, with chunks of so many recipients.
func (b *bundle) auditInChunks(t testing.TB, policy quota.Policy, recipients int) []store.Finding {
	t.Helper()
	b.forgetAudits(t)
	return finishAudit(t, b.beginAudit(t, policy, recipients))
}

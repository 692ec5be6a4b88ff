package e2e

import (
	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// wantAudited wants the audit to find no violations.
func (b *bundle) wantAudited() {
	b.t.Helper()
	if out := b.Tool("audit"); out != "no violations\n" {
		b.t.Errorf("audit: %s", out)
	}
}

// sql changes the installation's database directly.
func (b *bundle) sql(statement string) {
	b.t.Helper()
	testenv.Check(b.t, devstack.Exec(b.t.Context(), b.Database, statement))
}

// expire ends the time of a push that no worker attempts.
func (b *bundle) expire(id string) {
	b.t.Helper()
	b.sql(`UPDATE pushes SET expires_at = clock_timestamp() WHERE id = '` + id + `'`)
	b.sql(`UPDATE live SET expires_at = clock_timestamp() WHERE push_id = '` + id + `'`)
}

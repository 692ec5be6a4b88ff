package store_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// adopt gives the tenant a policy of its own, from so long ago on; an empty document: that of the file again.
func (b *bundle) adopt(t testing.TB, ago time.Duration, document string) {
	t.Helper()
	b.exec(t, `WITH v AS (UPDATE tenants SET policy_version = policy_version + 1 WHERE id = $1 RETURNING policy_version)
		INSERT INTO policies (tenant_id, version, at, document) SELECT $1, policy_version, clock_timestamp() - $2::interval, nullif($3, '')::json FROM v`,
		b.tenant, ago, document)
}

// describe says something of a recipient.
func (b *bundle) describe(t testing.TB, recipient, columns string, values ...any) {
	t.Helper()
	b.exec(t, `UPDATE tenants SET described = true WHERE id = $1`, b.tenant)
	key := push.RecipientKey(b.tenant, recipient)
	b.exec(t, `INSERT INTO recipients (shard, tenant_id, recipient_key, recipient) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, key&255, b.tenant, key, recipient)
	b.exec(t, `UPDATE recipients SET `+columns+` WHERE recipient_key = $1`, append([]any{key}, values...)...)
}

// auditBoth audits the whole database, and in chunks, and returns what each finds.
func (b *bundle) auditBoth(t testing.TB) map[string][]store.Finding {
	t.Helper()
	whole, err := b.Audit(t.Context(), perMinute, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]store.Finding{"whole": whole, "chunks": b.auditInChunks(t, perMinute, 1)}
}

// TestAudit_OtherPolicies: what the file's rules do not allow is no violation where a tenant has rules of its own, or a
// recipient limits.
func TestAudit_OtherPolicies(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bundle){
		"a policy of its own": func(b *bundle) {
			b.adopt(t, time.Hour, `{"rules": [{"name": "minute", "limit": 2, "window": "1m"}]}`)
		},
		"limits of one's own": func(b *bundle) { b.describe(t, "anna", `limits = '{"minute": 2}'`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.booked(t, "anna", time.Hour)
			b.booked(t, "anna", time.Hour+59*time.Second)
			for way, found := range b.auditBoth(t) {
				if len(found) != 1 || found[0].Check != "promised-window" {
					t.Errorf("%s, by the file's rules: %+v", way, found)
				}
			}
			change(b)
			for way, found := range b.auditBoth(t) {
				if len(found) > 0 {
					t.Errorf("%s: %+v", way, found)
				}
			}
		})
	}
}

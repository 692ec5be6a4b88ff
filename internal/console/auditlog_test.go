package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestAuditLog_Story lists, filters and exports the activity log. The changes of a console user have the user as their author.
func TestAuditLog_Story(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, err := b.api.Keys.Create(t.Context(), client.NewKey{Name: "back office", Scopes: []client.NewKeyScopes{"pushes:write"}})
	if err != nil {
		t.Fatal(err)
	}
	one := b.submit("anna", 26*time.Hour)
	b.follow(b.post("/console/pushes/"+one.ID+"/cancel")).has(t, 200)
	b.post("/console/settings/webhooks", "url", "https://hooks.example.com/a").has(t, 200)
	importer, _, err := b.store.CreateKey(t.Context(), apikey.NewKey{Tenant: b.tenant, Name: "importer", Scopes: push.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	user := b.who.Caller
	b.who.Caller = push.Caller{Tenant: b.tenant, Key: importer.ID, Scopes: push.Scopes}
	b.post("/console/settings/webhooks", "url", "https://hooks.example.com/b").has(t, 200)
	b.who.Caller = user
	all := b.get("/console/proof/log")
	all.has(t, 200, "canceled a message", "created a webhook", "created an API key", "user "+user.User.String(), "/console/pushes/"+one.ID, "host</strong> to hooks.example.com", "key importer", "scopes</strong> to pushes:write", "status</strong> from scheduled to canceled")
	if strings.Contains(all.Body, key.Secret) {
		t.Error("the log shows a secret")
	}
	some := b.get("/console/proof/log?actor_type=user&action=push.cancel&target=" + one.ID + "&tz=utc")
	some.has(t, 200, "canceled a message", "these entries", "/v1/audit-log?action=push.cancel")
	if strings.Contains(some.text(), "created a webhook") {
		t.Error("the filter does not filter")
	}
	b.get("/console/proof/log?actor="+uuid.NewString()).has(t, 200, "No entry matches this filter")
	b.get("/console/proof/log?actor=me&from=noon").has(t, 422, `"noon" is not a time`, `value="me"`)
	b.get("/console/proof/log?actor=me&action=dance").has(t, 422, `id="fault-actor"`, `id="fault-action"`)

	out := b.get("/console/proof/log/export?format=csv&action=push.cancel&from=2001-01-01T00:00")
	out.has(t, 200, "\uFEFFid;at;actor_type", one.ID)
	if strings.Contains(out.Body, "webhook.create") || !strings.Contains(out.Header.Get("Content-Disposition"), "who-did-what.csv") {
		t.Errorf("%s %s", out.Header, out.Body)
	}
	b.get("/console/proof/log/export?format=ndjson&actor_type=key").has(t, 200, `"key.create"`)
	b.get("/console/proof/log/export?from=noon").has(t, 422)
	// Those of the entries alone are looked for, however many keys there are.
	testenv.Exec(t, b.url, `INSERT INTO api_keys (id, tenant_id, hash, scopes, name, created_at)
		SELECT gen_random_uuid(), $1, sha256(convert_to(n::text, 'UTF8')), '{}', 'key ' || n, now() - n * interval '1 hour' FROM generate_series(1, 600) n`, [16]byte(b.tenant))
	testenv.Exec(t, b.url, `INSERT INTO audit_log (tenant_id, actor, actor_id, action, target, difference)
		SELECT tenant_id, 'key', id, 'key.revoke', id::text, '{}' FROM api_keys WHERE name IN ('key 1', 'key 600')`)
	b.get("/console/proof/log?action=key.revoke").has(t, 200, ">key key 1</a>", ">key key 600</a>", "key key 600</td>")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead}
	b.get("/console/proof/log").has(t, 200, "key ", "push "+one.ID)
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/proof/log").has(t, 403, "cannot do this")
}

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestKeys_Life through the operator's tool, as the API sees it.
func TestKeys_Life(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	opens := func(key string) bool {
		t.Helper()
		a, err := b.ask("GET", "/v1/pushes", nil, "Authorization", "Bearer "+key)
		testenv.Check(t, err)
		return a.status == 200
	}
	if !opens(b.Key) {
		t.Fatal("a new key does not open")
	}
	first := b.keys()[0]
	if first["tenant"] != "acme" || first["state"] != "live" || first["expires_at"] != nil || len(first["scopes"].([]any)) != len(push.Scopes) {
		t.Errorf("listed: %v", first)
	}
	b.until("its use is noted", func() bool {
		return testenv.Query[bool](t, b.Database, `SELECT last_used_at IS NOT NULL FROM api_keys`)
	})
	if b.keys()[0]["last_used_at"] == nil {
		t.Errorf("the list does not show its use: %v", b.keys())
	}

	// Rotation: two live keys, and then one.
	second := strings.TrimSuffix(b.Tool("keys", "rotate", first["id"].(string), "--overlap", "1h", "--expires", "2h"), "\n")
	if !strings.HasPrefix(second, "sq_") || strings.ContainsAny(second, " \n") || !opens(second) || !opens(b.Key) {
		t.Errorf("the old key opens: %v, the new one, %q: %v", opens(b.Key), second, opens(second))
	}
	if o := b.Exec("sendquota", "keys", "rotate", first["id"].(string)); o.Status == 0 || !strings.Contains(o.Err, b.keys()[1]["id"].(string)) || b.keys()[0]["successor"] != b.keys()[1]["id"] {
		t.Errorf("rotated twice: %+v", o)
	}
	b.sql(`UPDATE api_keys SET expires_at = clock_timestamp() WHERE successor IS NOT NULL`) // the hour is over
	b.until("the old key ends", func() bool { return !opens(b.Key) })

	// Revoked, it is refused, and revoking again says so.
	id := b.keys()[1]["id"].(string)
	if out := b.Tool("keys", "revoke", id); !strings.Contains(out, "is revoked") {
		t.Errorf("revoke says %q", out)
	}
	b.until("the revoked key is refused", func() bool { return !opens(second) })
	if out := b.Tool("keys", "revoke", id); !strings.Contains(out, "was revoked before") {
		t.Errorf("revoke says %q", out)
	}
	list := b.Tool("keys", "list", "--tenant", "acme")
	if strings.Contains(list, "sq_") || !strings.Contains(list, "expired") || !strings.Contains(list, "revoked") {
		t.Errorf("the list:\n%s", list)
	}

	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"keys", "revoke", "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"}, "there is no key 0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"},
		{[]string{"keys", "rotate", id}, "revoked or has expired"},
		{[]string{"keys", "list", "--tenant", "nobody"}, `there is no tenant "nobody"`},
	} {
		if o := b.Exec("sendquota", row.args...); o.Status == 0 || !strings.Contains(o.Err, row.want) {
			t.Errorf("%q: %+v", row.args, o)
		}
	}
}

// keys lists all keys, the oldest first.
func (b *bundle) keys() []object {
	b.t.Helper()
	var list struct{ Keys []object }
	testenv.Check(b.t, json.Unmarshal([]byte(b.Tool("keys", "list", "--json")), &list))
	return list.Keys
}

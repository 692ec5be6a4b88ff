package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestTheLifeOfAKey through the operator's tool, as the API sees it.
func TestTheLifeOfAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startAPI()
	opens := func(key string) bool {
		t.Helper()
		a, err := w.ask("GET", "/v1/pushes", nil, "Authorization", "Bearer "+key)
		if err != nil {
			t.Fatal(err)
		}
		return a.status == 200
	}
	if !opens(w.key) {
		t.Fatal("a new key does not open")
	}
	first := w.keys()[0]
	if first["tenant"] != "acme" || first["state"] != "live" || first["expires_at"] != nil || len(first["scopes"].([]any)) != len(push.Scopes) {
		t.Errorf("listed: %v", first)
	}
	w.until("its use is noted", func() bool { return w.keys()[0]["last_used_at"] != nil })

	// Rotation: two live keys, and then one.
	second := strings.TrimSuffix(w.tool("keys", "rotate", first["id"].(string), "--overlap", "4s", "--expires", "1h"), "\n")
	if !strings.HasPrefix(second, "sq_") || strings.ContainsAny(second, " \n") || !opens(second) || !opens(w.key) {
		t.Errorf("the old key opens: %v, the new one, %q: %v", opens(w.key), second, opens(second))
	}
	again := exec.Command(filepath.Join(w.bin, "sendquota"), "keys", "rotate", first["id"].(string))
	again.Env = w.env
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), w.keys()[1]["id"].(string)) || w.keys()[0]["successor"] != w.keys()[1]["id"] {
		t.Errorf("rotated twice: %v, %s", err, out)
	}
	w.until("the old key ends", func() bool { return !opens(w.key) })

	// Revoked, it is refused, and revoking again says so.
	id := w.keys()[1]["id"].(string)
	if out := w.tool("keys", "revoke", id); !strings.Contains(out, "is revoked") {
		t.Errorf("revoke says %q", out)
	}
	w.until("the revoked key is refused", func() bool { return !opens(second) })
	if out := w.tool("keys", "revoke", id); !strings.Contains(out, "was revoked before") {
		t.Errorf("revoke says %q", out)
	}
	list := w.tool("keys", "list", "--tenant", "acme")
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
		cmd := exec.Command(filepath.Join(w.bin, "sendquota"), row.args...)
		cmd.Env = w.env
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), row.want) {
			t.Errorf("%q: %v, %s", row.args, err, out)
		}
	}
}

// keys lists all keys, the oldest first.
func (w *world) keys() []object {
	w.t.Helper()
	var list struct{ Keys []object }
	if err := json.Unmarshal([]byte(w.tool("keys", "list", "--json")), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Keys
}

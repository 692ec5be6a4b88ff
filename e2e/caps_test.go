package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestTenantCaps_Operator checks that the operator's caps for a tenant override the file's in all programs within a
// second.
func TestTenantCaps_Operator(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: usualConfig + "tenant_caps: {pending_pushes: 1}\n"})
	b.StartAPI()
	other := b.beside()
	submit := func(b *bundle, recipient string) string {
		t.Helper()
		_, body := b.call("POST", "/v1/pushes", object{"recipient": recipient, "send_at": time.Now().Add(time.Hour), "message": object{}})
		problem, _ := body["type"].(string)
		return strings.TrimPrefix(problem, "urn:sendquota:problem:")
	}
	if got := submit(b, "a") + submit(other, "b"); got != "tenant-cap-exceeded" {
		t.Errorf("under the file's cap: %s", got)
	}
	if out := b.Tool("tenants", "cap", "acme", "--pending", "2", "--recipients-per-day", "0"); !strings.Contains(out, "pending pushes 2, recipients a day any") {
		t.Errorf("it says %q", out)
	}
	b.until("another one has a place", func() bool { return submit(other, "b") == "" })
	if got := submit(b, "c"); got != "tenant-cap-exceeded" {
		t.Errorf("under the tenant's cap: %q", got)
	}
	if out := b.Tool("tenants", "list"); !strings.Contains(out, "acme") || !strings.Contains(out, "any") {
		t.Errorf("the list:\n%s", out)
	}
	b.Tool("tenants", "cap", "acme", "--pending", "default")
	if out := b.Tool("tenants", "list", "--json"); !strings.Contains(out, `"pending_pushes":null,"recipients_per_day":0`) {
		t.Errorf("the list: %s", out)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"nobody", "--pending", "1"}, `there is no tenant "nobody"`},
		{[]string{"acme"}, "expected --pending"},
		{[]string{"acme", "--pending=-1", "--recipients-per-day=many"}, `--pending "-1": must be a whole number from 0`},
		{[]string{"acme", "--pending=-1", "--recipients-per-day=many"}, `--recipients-per-day "many"`},
		{[]string{"acme", "--pending", ""}, "--pending"},
	} {
		if o := b.Exec("sendquota", append([]string{"tenants", "cap"}, row.args...)...); o.Status == 0 || !strings.Contains(o.Err, row.want) {
			t.Errorf("%q: %+v", row.args, o)
		}
	}
}

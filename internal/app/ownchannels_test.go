package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTenantChannels_Throughput: the speed of a tenant's channel holds, the list shows when it is drained, and neither the tenant's
// other channels nor another tenant's channel of the same name wait. A change of the speed is in force at once.
func TestTenantChannels_Throughput(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	const pushes = 40
	b.put("slow", `, "throughput": {"rate": 10, "per": "1m"}`)
	b.put("fast", "")
	for i := range pushes {
		b.submit(b.caller, "slow", fmt.Sprint("slow-", i))
	}
	b.submit(b.caller, "fast", "fast")
	b.submit(b.other, "push", "theirs")
	b.arrives(b.own, "fast")
	b.arrives(b.operator, "theirs")
	shown := func() map[string]any {
		for _, c := range b.ask("GET", "/v1/channels", "")["channels"].([]any) {
			if c := c.(map[string]any); c["name"] == "slow" {
				return c
			}
		}
		t.Fatal("the channel is not listed")
		return nil
	}
	c := shown()
	waiting, _ := c["waiting"].(float64)
	level := c["levels"].([]any)[1].(map[string]any)
	drained, err := time.Parse(time.RFC3339, fmt.Sprint(level["drained_at"]))
	if err != nil || c["owner"] != "tenant" || c["state"] != "working" || waiting < pushes-5 || waiting > pushes {
		t.Fatalf("the channel is shown as %v", c)
	}
	if want := time.Duration(waiting) * 6 * time.Second; (time.Until(drained) - want).Abs() > want/10+time.Second {
		t.Errorf("%v pushes are gone in %s, not in %s", waiting, time.Until(drained), want)
	}
	b.put("slow", "") // without throughput
	for i := range pushes {
		b.arrives(b.own, fmt.Sprint("slow-", i))
	}
}

// TestTenantChannels_State: a provider that is down is shown to its tenant, and to no other tenant with a channel of that name.
func TestTenantChannels_State(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	down.Close()
	b.ask("PUT", "/v1/channels/push", fmt.Sprintf(`{"type": "webhook", "url": %q}`, down.URL))
	for i := range 30 {
		b.submit(b.caller, "push", fmt.Sprint("lost-", i))
	}
	state := func(c caller) string {
		for _, one := range c.ask("GET", "/v1/channels", "")["channels"].([]any) {
			if one := one.(map[string]any); one["name"] == "push" {
				return fmt.Sprint(one["state"])
			}
		}
		return ""
	}
	testenv.Until(t, 100*time.Millisecond, "the channel is failing", func() bool { return state(b.caller) == "failing" })
	b.submit(b.other, "push", "theirs")
	b.arrives(b.operator, "theirs")
	if s := state(b.other); s != "working" {
		t.Errorf("the operator's channel is %s", s)
	}
}

// TestTenantChannels_Expiry: a push that waited for a disabled channel until it expired says why.
func TestTenantChannels_Expiry(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("mine", `, "disabled": true`)
	soon := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)
	id, _ := b.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": "late", "channel": "mine", "message": {"body": "x"}, "expires_at": %q}`, soon))["id"].(string)
	var p map[string]any
	testenv.Until(t, 50*time.Millisecond, "the push expires", func() bool {
		p = b.ask("GET", "/v1/pushes/"+id, "")
		return p["status"] == "expired"
	})
	if p["last_error"] != "it expired before it could be sent: its channel is disabled" || p["attempts"] != 0.0 {
		t.Errorf("%v", p)
	}
}

// TestTenantChannels_LostSecret: a channel whose secret no key opens is not replaced by one without it.
func TestTenantChannels_LostSecret(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("mine", `, "secret": "MARKSECRET0123456789"`)
	testenv.Exec(t, string(b.app.cfg.DatabaseURL), `UPDATE tenant_channels SET secret = set_byte(secret, 60, get_byte(secret, 60) # 1)`)
	if p := b.ask("PUT", "/v1/channels/mine", fmt.Sprintf(`{"type": "webhook", "url": %q, "tpye": 1}`, b.own.url)); p["status"] != 422.0 ||
		!strings.Contains(fmt.Sprint(p), "body.secret") || !strings.Contains(fmt.Sprint(p), "must be sent again") || !strings.Contains(fmt.Sprint(p), "body.tpye") {
		t.Errorf("a change that leaves the secret out: %v", p)
	}
	if c := b.put("mine", `, "secret": "OTHERSECRET0123456789"`); c["problem"] != nil {
		t.Errorf("a change with the secret: %v", c)
	}
}

// TestTenantChannels_TestPaused: a pause stops tests, too, and those that it stops do not count.
func TestTenantChannels_TestPaused(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("mine", "")
	b.put("other", "")
	pause := b.ask("POST", "/v1/pauses", `{"scope": "channel", "name": "mine", "reason": "wrong account"}`)["id"]
	if p := b.ask("POST", "/v1/channels/mine/test", `{"message": {"body": "x"}}`); p["status"] != 409.0 || !strings.Contains(fmt.Sprint(p["detail"]), "pause") {
		t.Errorf("a test in a pause: %v", p)
	}
	if r := b.ask("POST", "/v1/channels/other/test", `{"message": {"body": "x"}}`); r["outcome"] != "delivered" || r["tests_left"] != 9.0 {
		t.Errorf("a test beside the pause: %v", r)
	}
	b.text("DELETE", fmt.Sprint("/v1/pauses/", pause), "")
	if r := b.ask("POST", "/v1/channels/mine/test", `{"message": {"body": "x"}}`); r["outcome"] != "delivered" {
		t.Errorf("a test after the pause: %v", r)
	}
}

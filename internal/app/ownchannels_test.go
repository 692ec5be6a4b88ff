package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

// TestTenantChannels_State: a provider that is down is shown to its tenant, and to nobody else who uses a channel of that name.
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

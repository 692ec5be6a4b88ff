package console

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// TestSettings_Keys: a key is made and shown once, rotated and revoked; its secret is in no log and in no list of calls.
func TestSettings_Keys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if r := b.get("/console/settings"); r.Header.Get("Location") != "/console/settings/keys" {
		t.Errorf("%d %s", r.Status, r.Header)
	}
	b.post("/console/settings/keys", "name", "no scopes", "expires_at", "never").has(t, 422, `id="fault-scopes">choose at least one scope<`, `id="fault-expires_at"`, `value="no scopes"`)
	b.post("/console/settings/keys", "name", "too late", "scopes", "pushes:read", "expires_at", "2001-01-01T00:00").has(t, 422, `id="fault-expires_at"`, `value="too late"`)
	made := b.post("/console/settings/keys", "name", "back office", "scopes", "pushes:read", "scopes", "quota:read")
	made.has(t, 200, "It is shown only once", "back office", "pushes:read, quota:read")
	secret := regexp.MustCompile(`class="secret">([^<]+)<`).FindStringSubmatch(made.Body)
	if secret == nil || strings.Count(made.Body, secret[1]) != 1 || strings.Contains(b.log.String(), secret[1]) {
		t.Fatalf("the secret %q is not shown once", secret)
	}
	if list := b.get("/console/settings/keys"); strings.Contains(list.Body, secret[1]) {
		t.Error("the list shows the secret again")
	}
	id := regexp.MustCompile(`back office <code class="quiet">([0-9a-f-]+)<`).FindStringSubmatch(made.Body)
	b.post("/console/settings/keys/"+id[1]+"/rotate", "overlap", "1 day").has(t, 422, `id="fault-overlap">"1 day" is not a time`, `value="1 day"`, `<a href="#o-`+id[1]+`">Old key works for</a>`, "<details open>")
	b.post("/console/settings/keys/"+id[1]+"/rotate", "overlap", "9000h").has(t, 422, `id="fault-overlap"`, `value="9000h"`)
	b.post("/console/settings/keys/"+id[1]+"/rotate", "overlap", "1h").has(t, 200, "This is the new API key")
	b.follow(b.post("/console/settings/keys/"+id[1]+"/revoke")).has(t, 200, "It stops working within a second")
	b.who.Caller.Scopes, b.who.Role = []string{push.ScopeKeysRead, push.ScopeRead}, "viewer"
	if page := b.get("/console/settings/keys"); strings.Contains(page.Body, "Create key") || strings.Contains(page.Body, "/settings/webhooks") {
		t.Error("a viewer is offered to make keys")
	}
	b.post("/console/settings/keys", "scopes", "pushes:read").has(t, 403, "cannot do this")
}

// TestSettings_Webhooks: a webhook is made, tested, given another secret and deleted.
func TestSettings_Webhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.get("/console/settings/webhooks").has(t, 200, "No webhooks yet")
	b.post("/console/settings/webhooks", "url", "ftp://x", "events", "push.nothing").has(t, 422, "url", `id="fault-events"`, `value="ftp://x"`)
	b.post("/console/settings/webhooks", "url", "https://hooks.example.com/a", "events", "push.sent, push.failed").has(t, 200, "It is shown only once", "push.sent, push.failed")
	path := regexp.MustCompile(`/console/settings/webhooks/[0-9a-f-]+`).FindString(b.get("/console/settings/webhooks").Body)
	b.follow(b.post(path, "do", "test")).has(t, 200, "Test event sent", "webhook.test", `status-waiting`)
	b.get(path+"?event=push.nothing&push=x").has(t, 422, `id="fault-event"`, `id="fault-push"`, `value="push.nothing"`, "https://hooks.example.com/a")
	b.get("/console/settings/webhooks/x").has(t, 404)
	b.get(path+"?status=failed").has(t, 200, "No delivery matches this filter")
	b.post(path, "do", "rotate").has(t, 200, "This is the new secret")
	b.follow(b.post(path, "do", "replay-failed")).has(t, 200, "Nothing to resend: no event failed permanently in the last seven days.")
	b.follow(b.post(path, "do", "delete")).has(t, 200, "Webhook deleted")
	b.get(path).has(t, 404)
}

// TestSettings_Channels describes the channels and sends a test push through one.
func TestSettings_Channels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.get("/console/settings/channels").has(t, 200, "No worker has reported recently", "up to 90 in 1 min", "Send a test message through sms")
	b.post("/console/settings/channels", "channel", "sms", "recipient", "", "to", "+4512345678").has(t, 422, `<a href="#r-sms">`, `id="fault-recipient"`, "+4512345678")
	b.follow(b.post("/console/settings/channels", "channel", "sms", "recipient", "me", "once", "1")).has(t, 200, "Test message to", "Message for me")
	b.post("/console/settings/channels", "channel", "sms", "recipient", "me", "once", "2").has(t, 409, "per-minute")
}

// TestSettings_Caps describes each cap, with the recipients of the day in the URL.
func TestSettings_Caps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("anna", 26*time.Hour)
	day := one.SendAt.UTC().Format(time.DateOnly)
	b.get("/console/settings/caps?day="+day).has(t, 200, "1; no cap", "Recipients with a message on "+day, `value="`+day+`"`, "/v1/caps?day="+day)
	b.get("/console/settings/caps").has(t, 200, "0; no cap", "Size of campaign audiences in bytes")
	b.get("/console/settings/caps?day=soon").has(t, 422, `id="fault-day">write it as 2026-12-01`, `value="soon"`)
	pending, people := 4, 1
	b.who.Caller.Caps = push.OwnCaps{PendingPushes: &pending, RecipientsPerDay: &people}
	b.get("/console/settings/caps?day="+day).has(t, 200, "1 of 4 (25.0 %)", `max="4" value="1"`, "1 of 1: nothing more is accepted")
	b.who.Caller.Scopes = []string{push.ScopeKeysRead}
	b.get("/console/settings/caps").has(t, 403, "cannot do this")
}

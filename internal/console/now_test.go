package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestNow tells in words and numbers how things stand, at first of nothing.
func TestNow(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.get("/console/now").has(t, 200, "no worker has reported", "Nothing is waiting", "No attempts in the last hour", "curl -sS 'https://api.example.com/v1/status'",
		"curl -sS 'https://api.example.com/v1/channels'", `hx-sse:connect="/console/now/live"`)

	one := b.submit("user-1", time.Hour)
	testenv.Exec(t, b.url, `UPDATE live SET next_at = now() - interval '90 seconds', send_at = now() - interval '90 seconds'`)
	testenv.Exec(t, b.url, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, shard, recipient, channel, send_at, started_at, lease_until, ended_at, outcome)
		SELECT gen_random_uuid(), 1, $2, i, i & 255, 'anna', 'push', now() - interval '1.25 s' * i, now() - interval '1 s', now(), now(), CASE WHEN i <= 2 THEN 'delivered' ELSE 'refused' END
		FROM generate_series(1, 5) i, (SELECT $1::uuid) one`, one.ID, b.tenant)
	views := []channelhealth.View{{Channel: "push", State: channelhealth.Failing, Held: time.Minute}, {Channel: "sms", State: channelhealth.Working}}
	if err := b.store.ReplaceChannelViews(t.Context(), uuid.New(), views); err != nil {
		t.Fatal(err)
	}
	var page reply
	testenv.Until(t, 50*time.Millisecond, "the status and the channels are counted again", func() bool {
		page = b.get("/console/now?tz=utc")
		return strings.Contains(page.Body, "message queued. It was due at") && strings.Contains(page.Body, "the provider is not responding") && strings.Contains(page.Body, "99 % were sent within")
	})
	page.has(t, 200, "1 min ago", "push is not sending", "1.2 s", "2.5 s", "99 % were sent within", "the provider is not responding", "in 1 min", "0 delivered", "2 delivered, 3 refused, 0 unconfirmed", "up to 90 in 1 min", `"delivered":[`, "1 running",
		"It works normally")
	if err := b.store.CountOutcomes(t.Context(), uuid.New(), []channelhealth.Outcomes{{Tenant: b.tenant, Channel: "sms", Attempts: 360, Rejected: 360}}); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, 50*time.Millisecond, "the channels are counted again", func() bool {
		page = b.get("/console/now")
		return strings.Contains(page.Body, "through sms are refused")
	})
	page.has(t, 200, "360 of 360 in the last five minutes", `<span class="status status-open">rejecting</span>`)
	b.get("/console/settings/channels").has(t, 200, "360 of 360 attempts refused permanently", "rejecting")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead}
	if page := b.get("/console/now"); page.Status != 200 || strings.Contains(page.Body, "the provider is not responding") {
		t.Errorf("who may not read pushes sees the channels: %d", page.Status)
	}
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/now").has(t, 403, "cannot do this")
}

// TestNow_Live streams the part that changes.
func TestNow_Live(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	server := httptest.NewServer(b.console)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/console/now/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	part := make([]byte, 16<<10)
	n, _ := answer.Body.Read(part)
	if text := string(part[:n]); answer.StatusCode != 200 || !strings.HasPrefix(text, "data: ") || !strings.Contains(text, "Nothing is waiting") || strings.Contains(text, "<html") {
		t.Errorf("%s: %s", answer.Status, text)
	}
}

package httpapi

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// TestStatus: the answer has the state of the servers, and the tenant's own waiting pushes and attempts, counted once a second.
func TestStatus(t *testing.T) {
	b := setupAlone(t)
	b.freeze()
	got := b.send("GET", "/v1/status", "").must(t, 200)
	if got.at(t, "status") != "ready" || got.at(t, "postgres") != "ok" || got.at(t, "redis") != "ok" || got.at(t, "queue") != "ok" || got.at(t, "workers") != 0.0 ||
		got.at(t, "waiting", "oldest_send_at") != nil || got.at(t, "attempts", "late_ms_p50") != nil || len(got.at(t, "minutes").([]any)) != 0 || got.at(t, "complete") != true {
		t.Errorf("%s", got.text)
	}

	one := b.send("POST", "/v1/pushes", `{"recipient":"anna","message":{}}`).must(t, 201).at(t, "id")
	b.exec(`UPDATE live SET next_at = now() - interval '1 second', send_at = now() - interval '1 second'`)
	b.exec(`
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, shard, recipient, channel, send_at, started_at, lease_until, ended_at, outcome)
		SELECT $1, 1, $2, 1, 1, 'anna', 'push', now() - interval '1.25 s', now() - interval '1 s', now(), now(), 'delivered'`, one, b.tenant)
	if err := b.store.ReplaceChannelViews(t.Context(), uuid.New(), []channelhealth.View{{Channel: "push", State: channelhealth.Working}}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.CountOutcomes(t.Context(), uuid.New(), []channelhealth.Outcomes{{Tenant: b.tenant, Channel: "push", Attempts: 20, Rejected: 5}}); err != nil {
		t.Fatal(err)
	}
	if b.send("GET", "/v1/status", "").must(t, 200).at(t, "waiting", "pushes") != 0.0 {
		t.Error("it was counted again within the second")
	}
	b.advance(time.Second)
	got = b.send("GET", "/v1/status", "").must(t, 200)
	if got.at(t, "waiting", "pushes") != 1.0 || got.at(t, "waiting", "oldest_send_at") == nil || got.at(t, "workers") != 1.0 ||
		got.at(t, "attempts", "delivered") != 1.0 || got.at(t, "attempts", "late_ms_p50") != 1250.0 || got.at(t, "attempts", "late_ms_p99") != 1250.0 ||
		got.at(t, "channels", 0, "name") != "push" || got.at(t, "channels", 0, "state") != "rejecting" || got.at(t, "channels", 1, "state") != "unknown" ||
		got.at(t, "minutes", 0, "delivered") != 1.0 || got.at(t, "minutes", 0, "late_ms_p99") != 1250.0 {
		t.Errorf("%s", got.text)
	}
	got = b.send("GET", "/v1/status", "", "Authorization", "Bearer "+b.other).must(t, 200)
	if got.at(t, "waiting", "pushes") != 0.0 || got.at(t, "attempts", "delivered") != 0.0 || got.at(t, "channels", 0, "state") != "working" {
		t.Errorf("another tenant's: %s", got.text)
	}

	b.send("GET", "/v1/status?x=1", "").must(t, 422, "invalid-request")
	_, lesser := b.newTenant("lesser", push.ScopeRead)
	b.send("GET", "/v1/status", "", "Authorization", "Bearer "+lesser).must(t, 403, "forbidden")
}

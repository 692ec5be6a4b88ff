package httpapi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// TestChannels lists what is configured, how the workers see it, and what waits of the tenant's own.
func TestChannels(t *testing.T) {
	b := setup(t)
	b.freeze()
	var levels []any
	for _, l := range push.Levels {
		levels = append(levels, map[string]any{"level": l.String(), "waiting": 0.0, "paused": 0.0, "oldest_due_at": nil, "drained_at": nil})
	}
	nothing := map[string]any{"delivered": 0.0, "refused": 0.0, "unknown": 0.0}
	unknown := func() []any {
		return []any{
			map[string]any{"name": "push", "owner": "operator", "type": "webhook", "default": true, "problem": nil, "state": "unknown", "until": nil, "as_of": nil, "throughput": map[string]any{"rate": 90.0, "per": "1m0s", "burst": 1.0, "unit": "messages"}, "pause_id": nil, "waiting": 0.0, "paused": 0.0, "levels": levels, "last_minute": nothing, "last_five_minutes": map[string]any{"attempts": 0.0, "rejected": 0.0, "failed": 0.0}},
			map[string]any{"name": "sms", "owner": "operator", "type": "sms", "default": false, "problem": nil, "state": "unknown", "until": nil, "as_of": nil, "pause_id": nil, "waiting": 0.0, "paused": 0.0, "levels": levels, "last_minute": nothing, "last_five_minutes": map[string]any{"attempts": 0.0, "rejected": 0.0, "failed": 0.0}},
		}
	}
	got := b.send("GET", "/v1/channels", "").must(t, 200)
	if diff := cmp.Diff(map[string]any{"channels": unknown(), "complete": true, "tenant_channels": map[string]any{"max": 0.0, "types": []any{}, "allow_private_addresses": false}}, got.body); diff != "" {
		t.Error(diff)
	}

	b.send("POST", "/v1/pushes", `{"recipient":"anna","message":{}}`).must(t, 201)
	b.exec(`UPDATE live SET next_at = now() - interval '1 second', send_at = now() - interval '1 second'`)
	worker := uuid.New()
	if err := b.store.ReplaceChannelViews(t.Context(), worker, []channelhealth.View{{Channel: "push", State: channelhealth.Failing, Held: time.Minute}, {Channel: "old", State: channelhealth.Paused}}); err != nil {
		t.Fatal(err)
	}
	if b.send("GET", "/v1/channels", "").must(t, 200).at(t, "channels", 0, "state") != "unknown" {
		t.Error("it was counted again within the second")
	}
	b.advance(time.Second)
	for key, waiting := range map[string]float64{b.key: 1, b.other: 0} {
		got = b.send("GET", "/v1/channels", "", "Authorization", "Bearer "+key).must(t, 200)
		if got.at(t, "channels", 0, "state") != "failing" || got.at(t, "channels", 0, "until") == nil || got.at(t, "channels", 0, "as_of") == nil ||
			got.at(t, "channels", 0, "waiting") != waiting || len(got.at(t, "channels").([]any)) != 2 {
			t.Errorf("%s", got.text)
		}
		if diff := cmp.Diff(unknown()[1], got.at(t, "channels", 1)); diff != "" {
			t.Error(diff)
		}
	}

	if err := b.store.CountOutcomes(t.Context(), uuid.New(), []channelhealth.Outcomes{{Tenant: b.tenant, Channel: "push", Attempts: 360, Rejected: 360}}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.ReplaceChannelViews(t.Context(), worker, []channelhealth.View{{Channel: "push", State: channelhealth.Working}}); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second)
	for key, want := range map[string]string{b.key: "rejecting", b.other: "working"} {
		got = b.send("GET", "/v1/channels", "", "Authorization", "Bearer "+key).must(t, 200)
		if got.at(t, "channels", 0, "state") != want || (got.at(t, "channels", 0, "last_five_minutes", "rejected") == 360.0) != (want == "rejecting") {
			t.Errorf("want %s: %s", want, got.text)
		}
	}

	if err := b.store.CountOutcomes(t.Context(), uuid.New(), []channelhealth.Outcomes{{Tenant: b.tenant, Channel: "push", Attempts: 100, Failed: 100}}); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second)
	if got = b.send("GET", "/v1/channels", "").must(t, 200); got.at(t, "channels", 0, "state") != "failing" || got.at(t, "channels", 0, "last_five_minutes", "failed") != 100.0 {
		t.Errorf("%s", got.text)
	}

	b.send("GET", "/v1/channels?name=push&x=1", "").must(t, 422, "invalid-request")
	_, lesser := b.newTenant("lesser", push.ScopeQuota)
	b.send("GET", "/v1/channels", "", "Authorization", "Bearer "+lesser).must(t, 403, "forbidden")
}

// TestChannels_Levels: what waits in each level, since when, and when it will have left: by the channel's speed, and with
// what waits of others.
func TestChannels_Levels(t *testing.T) {
	b := setup(t)
	b.freeze()
	b.send("PUT", "/v1/policy", `{"rules":[],"categories":{"code":{"level":"urgent"},"news":{"level":"bulk"}}}`).must(t, 200)
	if got := b.send("POST", "/v1/pushes", `{"recipient":"anna","category":"Code","message":{}}`).must(t, 201); got.at(t, "level") != "urgent" {
		t.Errorf("a code: %s", got.text)
	}
	for _, r := range []string{"bert", "carl", "dora"} {
		b.send("POST", "/v1/pushes", `{"recipient":"`+r+`","category":"news","message":{}}`).must(t, 201)
	}
	if got := b.send("POST", "/v1/pushes", `{"recipient":"emil","message":{}}`, "Authorization", "Bearer "+b.other).must(t, 201); got.at(t, "level") != "normal" {
		t.Errorf("another tenant's: %s", got.text)
	}
	b.exec(`UPDATE live SET next_at = now() - interval '1 second', send_at = now() - interval '1 second'`)
	got := b.send("GET", "/v1/channels", "").must(t, 200)
	// 90 a minute: the code leaves within its share, the bulk ones last. Other tests' pushes may wait, too.
	for i, want := range []struct {
		waiting float64
		drained time.Duration
	}{{1, 952 * time.Millisecond}, {0, 0}, {3, 3333 * time.Millisecond}} {
		if got.at(t, "channels", 0, "levels", i, "waiting") != want.waiting {
			t.Errorf("level %d: %s", i, got.text)
		}
		drained, ok := got.at(t, "channels", 0, "levels", i, "drained_at").(string)
		if (want.waiting > 0) != ok || (got.at(t, "channels", 0, "levels", i, "oldest_due_at") != nil) != ok {
			t.Errorf("level %d: %s", i, got.text)
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, drained); ok && (err != nil || at.Sub(b.now()).Round(time.Millisecond) < want.drained) {
			t.Errorf("level %d has left after %s, want at least %s; %v", i, at.Sub(b.now()), want.drained, err)
		}
	}
	stats := b.send("GET", "/v1/stats?group_by=level", "").must(t, 200)
	if len(stats.at(t, "groups").([]any)) != 2 || stats.at(t, "groups", 0, "key") != "bulk" || stats.at(t, "groups", 0, "accepted") != 3.0 ||
		stats.at(t, "groups", 1, "key") != "urgent" || stats.at(t, "groups", 1, "accepted") != 1.0 {
		t.Errorf("statistics: %s", stats.text)
	}
	b.send("PUT", "/v1/policy", `{"rules":[],"categories":{"code":{"level":"asap"},"news":{"level":""}}}`).must(t, 422, "invalid-request")
}

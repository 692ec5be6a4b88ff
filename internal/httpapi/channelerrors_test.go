package httpapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

// setupSMS is a bundle whose channel sms is one of text messages; the first of its channels is the default.
func setupSMS(t *testing.T, channels ...string) *bundle {
	b := setup(t)
	check := func(name, to string, message json.RawMessage) invalid.FieldErrors {
		if name != "sms" {
			return nil
		}
		return new(channel.SMS).Check(to, message)
	}
	service := schedule.New(b.store, quota.NewCache(b.rdb, patientRedis()), noQueue{}, &b.metrics, b.now,
		schedule.Config{Policy: testPolicy(), Channels: channels, DefaultTTL: time.Hour, MaxHorizon: 24 * time.Hour, Horizon: time.Minute, Check: check})
	b.api = New(service, b.store, Config{RequestTimeout: patience, Log: slog.New(slog.NewJSONHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Now: b.now})
	return b
}

// faultsOf lists the faults of a problem with what was there.
func faultsOf(t *testing.T, problem any) []string {
	t.Helper()
	var all []string
	errs, _ := problem.(map[string]any)["errors"].([]any)
	for _, e := range errs {
		one := e.(map[string]any)
		all = append(all, fmt.Sprint(one["location"], ": ", one["value"]))
	}
	return all
}

// TestSubmit_ProviderErrors: what a provider would refuse is refused together with everything else that is wrong,
// however it is submitted, and booked nowhere.
func TestSubmit_ProviderErrors(t *testing.T) {
	b := setupSMS(t, "push", "sms")
	const number = "4570MARKNUMBER"
	long := strings.Repeat("4", 400)
	for _, tt := range []struct {
		name, target, body string
		want               []string
	}{
		{"one", "/v1/pushes", `{"recipient":"a","channel":"sms","to":"` + number + `","message":{}}`, []string{"body.to: " + number, "body.message.body: <nil>"}},
		{"validated", "/v1/pushes?validate_only=true", `{"recipient":"a","channel":"sms","to":"` + number + `","message":{"body":"x"}}`, []string{"body.to: " + number}},
		{"no address", "/v1/pushes", `{"recipient":"a","channel":"sms","message":{"body":"x"}}`, []string{"body.to: <nil>"}},
		{"long", "/v1/pushes", `{"recipient":"a","channel":"sms","to":"` + long + `","message":{"body":"x"}}`, []string{"body.to: " + long[:256] + "…"}},
		{"with a fault of the schedule", "/v1/pushes", `{"recipient":"a","channel":"sms","to":"x","message":{"body":"x"},"send_at":"2020-01-01T00:00:00Z"}`, []string{"body.to: x", "body.send_at: 2020-01-01T00:00:00Z"}},
		{"with a fault of form", "/v1/pushes", `{"recipient":"","channel":"sms","to":"x","message":{"title":1}}`, []string{"body.recipient: ", "body.message.title: 1", "body.to: x", "body.message.body: <nil>"}},
		{"a body of another kind", "/v1/pushes", `{"recipient":"a","channel":"sms","to":"+4512345678","message":{"body":1}}`, []string{"body.message.body: 1"}},
		{"no message", "/v1/pushes", `{"recipient":"a","channel":"sms","to":"x"}`, []string{"body.message: <nil>", "body.to: x"}},
		{"an address of another kind", "/v1/pushes", `{"recipient":"a","channel":"sms","to":5,"message":{"body":"x"}}`, []string{"body.to: 5"}},
		{"an unknown channel", "/v1/pushes", `{"recipient":"a","channel":"fax","to":"x","message":{}}`, []string{"body.channel: fax"}},
		{"an atomic batch", "/v1/pushes/batch", `{"atomic":true,"pushes":[{"recipient":"a","message":{}},{"recipient":"b","channel":"sms","to":"x","message":{"body":"x"}}]}`, []string{"body.pushes[1].to: x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := b.send("POST", tt.target, tt.body)
			if diff := cmp.Diff(tt.want, faultsOf(t, any(got.body))); got.status != 422 || diff != "" {
				t.Errorf("%d, faults (-want +got):\n%s", got.status, diff)
			}
		})
	}

	got := b.send("POST", "/v1/pushes/batch", `{"pushes":[{"recipient":"a","message":{}},{"recipient":"b","channel":"sms","to":"`+number+`","message":{"body":"x"}},`+
		`{"recipient":"c","channel":"sms","to":"+4512345678","message":{"body":"x"}}]}`)
	results, _ := got.body["results"].([]any)
	if got.status != 200 || len(results) != 3 || got.body["accepted"] != 2.0 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	if diff := cmp.Diff([]string{"body.pushes[1].to: " + number}, faultsOf(t, results[1].(map[string]any)["problem"])); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if strings.Contains(b.log.String(), "MARKNUMBER") {
		t.Errorf("an address in the log: %s", b.log.String())
	}
}

// TestCheck_AsksNoProvider: a question about a quota has no address and no message, which the provider of a push demands.
func TestCheck_AsksNoProvider(t *testing.T) {
	b := setupSMS(t, "sms", "push")
	b.send("POST", "/v1/quota/check", `{"recipient":"a","channel":"sms"}`).must(t, 200)
	got := b.send("POST", "/v1/quota/check", `{"recipient":"a","send_at":"2020-01-01T00:00:00Z","foo":1}`)
	if diff := cmp.Diff([]string{"body.foo: 1", "body.send_at: 2020-01-01T00:00:00Z"}, faultsOf(t, any(got.body))); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestSubmit_UnreadableChannel: no error depends on a channel that could not be read.
func TestSubmit_UnreadableChannel(t *testing.T) {
	b := setupSMS(t, "sms", "push")
	got := b.send("POST", "/v1/pushes", `{"recipient":"a","channel":7,"to":"x","message":{}}`)
	if diff := cmp.Diff([]string{"body.channel: 7"}, faultsOf(t, any(got.body))); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

package channel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/push"
)

func TestWebhook_Request(t *testing.T) {
	provider := newProvider(t, answers(200, ""))
	w := newTestWebhook(t, WebhookConfig{URL: provider.url() + "/send?token=a#part"})
	p := testPush()
	p.Message = json.RawMessage(`{"z": 1.0, "a": 12345678901234567891, "html": "<b>&\u2028</b>", "é": "\u00e9"}`)
	w.Send(t.Context(), p, 3)

	requests, _ := provider.seen()
	if len(requests) != 1 {
		t.Fatalf("the provider got %d requests", len(requests))
	}
	want := `{"id":"01900000-0000-7000-8000-000000000042","recipient":"MARKRECIPIENT","to":"MARKADDRESS","channel":"push",` +
		`"category":"marketing","message":{"z":1.0,"a":12345678901234567891,"html":"<b>&\u2028</b>","é":"\u00e9"},` +
		`"send_at":"2026-12-01T08:00:00Z","attempt":3,"metadata":{"campaign":"MARKMETADATA"}}`
	if diff := cmp.Diff(want, string(requests[0].body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	r := requests[0]
	if got := r.Method + " " + r.RequestURI + " " + r.Proto; got != "POST /send?token=a HTTP/1.1" {
		t.Errorf("request line %q", got)
	}
	h := r.Header
	h.Del("Webhook-Signature")
	h.Del("Webhook-Timestamp")
	if diff := cmp.Diff(http.Header{
		"Content-Type":    {"application/json"},
		"Content-Length":  h["Content-Length"],
		"User-Agent":      {"sendquota/1"},
		"Idempotency-Key": {p.ID.String()},
		"Webhook-Id":      {p.ID.String()},
	}, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestWebhook_EmptyKeys(t *testing.T) {
	provider := newProvider(t, answers(200, ""))
	p := testPush()
	p.To, p.Category, p.Metadata = "", "", nil
	newTestWebhook(t, WebhookConfig{URL: provider.url()}).Send(t.Context(), p, 1)
	requests, _ := provider.seen()
	for _, want := range []string{`"to":""`, `"category":""`, `"metadata":null`} {
		if len(requests) != 1 || !strings.Contains(string(requests[0].body), want) {
			t.Errorf("%s is missing in %v", want, requests)
		}
	}
}

func TestWebhook_InvalidJSON(t *testing.T) {
	provider := newProvider(t, answers(200, ""))
	p := testPush()
	p.Message = json.RawMessage(`{"` + markMessage + `"`)
	got := newTestWebhook(t, WebhookConfig{URL: provider.url()}).Send(t.Context(), p, 1)
	if got.Outcome != push.Refused || !got.Final {
		t.Errorf("got %+v, want a permanent refusal", got)
	}
	checkError(t, got.Error)
	if _, conns := provider.seen(); conns != 0 {
		t.Errorf("the provider got %d connections", conns)
	}
}

func TestWebhook_Signature(t *testing.T) {
	const key = "a key of some length"
	for _, tt := range []struct{ name, secret, receiver string }{
		{"encoded", "whsec_YSBrZXkgb2Ygc29tZSBsZW5ndGg=", key},
		{"raw", key, key},
		{"raw that looks like base64", "YSBrZXk=", "YSBrZXk="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			provider := newProvider(t, answers(200, ""))
			w := newTestWebhook(t, WebhookConfig{URL: provider.url(), Secret: tt.secret})
			receiver, err := standardwebhooks.NewWebhookRaw([]byte(tt.receiver))
			if err != nil {
				t.Fatal(err)
			}
			w.Send(t.Context(), testPush(), 1)
			requests, _ := provider.seen()
			if err := receiver.Verify(requests[0].body, requests[0].Header); err != nil {
				t.Error(err)
			}
			if receiver.Verify(append(requests[0].body, ' '), requests[0].Header) == nil {
				t.Error("another body has the same signature")
			}
		})
	}
}

// A receiver that knows either secret accepts the request.
func TestWebhook_TwoSecrets(t *testing.T) {
	const old, current = "the key of last year", "the key of this year"
	provider := newProvider(t, answers(200, ""))
	newTestWebhook(t, WebhookConfig{URL: provider.url(), Secret: current, PreviousSecret: old}).Send(t.Context(), testPush(), 1)
	requests, _ := provider.seen()
	for key, want := range map[string]bool{old: true, current: true, "the key of next year": false} {
		receiver, err := standardwebhooks.NewWebhookRaw([]byte(key))
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.Verify(requests[0].body, requests[0].Header); (err == nil) != want {
			t.Errorf("with %s: %v", key, err)
		}
	}
	if n := strings.Count(requests[0].Header.Get("Webhook-Signature"), "v1,"); n != 2 {
		t.Errorf("%d signatures", n)
	}
}

func TestWebhook_NoSecret(t *testing.T) {
	provider := newProvider(t, answers(200, ""))
	w, err := NewWebhook(WebhookConfig{Connection: testConnection(0), URL: provider.url()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	w.Send(t.Context(), testPush(), 1)
	requests, _ := provider.seen()
	h := requests[0].Header
	if h.Get("Webhook-Signature") != "" || h.Get("Webhook-Timestamp") != "" || h.Get("Webhook-Id") == "" {
		t.Errorf("headers %v", h)
	}
}

func TestWebhook_IdempotencyKey(t *testing.T) {
	provider := newProvider(t, answers(500, ""))
	now := testNow()
	w := newTestWebhook(t, WebhookConfig{Connection: Connection{Now: func() time.Time { return now }}, URL: provider.url()})
	stamps := map[string]bool{}
	for attempt := range 3 {
		w.Send(t.Context(), testPush(), attempt+1)
		now = now.Add(time.Minute)
	}
	requests, conns := provider.seen()
	if len(requests) != 3 || conns != 1 {
		t.Fatalf("%d requests on %d connections, want 3 on 1", len(requests), conns)
	}
	for i, r := range requests {
		id := testPush().ID.String()
		if r.Header.Get("Idempotency-Key") != id || r.Header.Get("Webhook-Id") != id {
			t.Errorf("attempt %d has the headers %v", i+1, r.Header)
		}
		stamps[r.Header.Get("Webhook-Timestamp")] = true
	}
	if len(stamps) != 3 {
		t.Errorf("timestamps %v, want each attempt's own", stamps)
	}
}

func TestWebhook_UserInURL(t *testing.T) {
	provider := newProvider(t, answers(200, ""))
	url := strings.Replace(provider.url(), "http://", "http://us%20er:pass@", 1)
	newTestWebhook(t, WebhookConfig{URL: url}).Send(t.Context(), testPush(), 1)
	requests, _ := provider.seen()
	if user, password, ok := requests[0].BasicAuth(); !ok || user != "us er" || password != "pass" {
		t.Errorf("got %q %q %t", user, password, ok)
	}
}

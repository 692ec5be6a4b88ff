package channel

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
)

// notWhen compares results without the time of the handover, and without Down, which TestDown checks.
var notWhen = cmpopts.IgnoreFields(Result{}, "Handed", "Down", "Segments")

// Handed is the time when the provider had the message, not when it answered.
func TestChannels_Handed(t *testing.T) {
	t.Parallel()
	const slow = 200 * time.Millisecond
	var had time.Time
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		had = time.Now()
		time.Sleep(slow)
	}))
	t.Cleanup(server.Close)
	w, err := NewWebhook(WebhookConfig{Connection: testConnection(0), URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	began := time.Now()
	got := w.Send(t.Context(), testPush(), 1)
	if ended := time.Now(); got.Handed.Before(began) || got.Handed.After(ended.Add(-slow)) {
		t.Errorf("handed over %s after the beginning; the provider had it after %s, the end came after %s", got.Handed.Sub(began), had.Sub(began), ended.Sub(began))
	}
}

package channel

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// BenchmarkWebhookSend counts the provider's work as well: both ends share the
// processors.
func BenchmarkWebhookSend(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write([]byte(`{"id":"abc"}`))
	}))
	defer server.Close()
	w, p := newTestWebhook(b, WebhookConfig{URL: server.URL}), testPush()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r := w.Send(b.Context(), p, 1); r.Outcome != push.Delivered {
				b.Error(r.Error)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	p := testPush()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encode(p, 1); err != nil {
			b.Fatal(err)
		}
	}
}

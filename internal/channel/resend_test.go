package channel

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// diesOnReuse is a provider that answers the first request, and ends the connection after reading any other, which it
// may have acted on.
func diesOnReuse(end behavior) behavior {
	var answered atomic.Bool
	return func(c *net.TCPConn, r received, stop <-chan struct{}) bool {
		if answered.CompareAndSwap(false, true) {
			return answers(200, "")(c, r, stop)
		}
		return end(c, r, stop)
	}
}

func TestWebhook_ReusedConnectionDies(t *testing.T) {
	for name, end := range map[string]behavior{"closed": drops, "reset": resets} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, diesOnReuse(end))
			w := newTestWebhook(t, WebhookConfig{URL: p.url()})
			w.Send(t.Context(), testPush(), 1)
			got := w.Send(t.Context(), testPush(), 1)
			if got.Outcome != push.Unknown {
				t.Errorf("got %+v, want unknown", got)
			}
			if requests, conns := p.seen(); len(requests) != 2 || conns != 1 {
				t.Errorf("%d requests on %d connections for two sends, want 2 on 1", len(requests), conns)
			}
		})
	}
}

// A transport that can read the body again sends it twice. If it did not, the test above would show nothing.
func TestTransport_ResendsWithGetBody(t *testing.T) {
	for name, end := range map[string]behavior{"closed": drops, "reset": resets} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, diesOnReuse(end))
			w := newTestWebhook(t, WebhookConfig{URL: p.url()})
			for range 2 {
				req, err := w.request(testPush(), 1)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(req.Body)
				if err != nil {
					t.Fatal(err)
				}
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
				req.Body, _ = req.GetBody()
				_, _ = w.client.Do(t.Context(), req)
			}
			if requests, conns := p.seen(); len(requests) != 3 || conns != 2 {
				t.Errorf("%d requests on %d connections for two sends, want 3 on 2", len(requests), conns)
			}
		})
	}
}

package channel

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

var _ = []Connected{(*Webhook)(nil), (*SMS)(nil), (*FCM)(nil), (*APNs)(nil), (*Email)(nil)}

// TestConnected_CloseIdle: a channel keeps its connection until CloseIdle closes it, and then sends through another one.
func TestConnected_CloseIdle(t *testing.T) {
	t.Parallel()
	var opened, closed atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	w := newTestWebhook(t, WebhookConfig{Connection: testConnection(ample), URL: server.URL})
	send := func() {
		t.Helper()
		if got := w.Send(t.Context(), testPush(), 1); got.Outcome != push.Delivered {
			t.Fatalf("%+v", got)
		}
	}
	send()
	send()
	if opened.Load() != 1 {
		t.Errorf("two sends opened %d connections", opened.Load())
	}
	w.CloseIdle()
	testenv.Until(t, time.Millisecond, "the connection is closed", func() bool { return closed.Load() == 1 })
	if send(); opened.Load() != 2 {
		t.Errorf("%d connections after a third send", opened.Load())
	}
}

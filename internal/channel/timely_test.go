package channel

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// TestAWorkerThatWasFrozenSendsNothing: it freezes when it has a connection and
// is about to write. On http and on https nothing leaves it, and the attempt is
// surely not delivered.
func TestAWorkerThatWasFrozenSendsNothing(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		t.Run(name, func(t *testing.T) {
			var arrived atomic.Int64
			server := start(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
			defer server.Close()
			w, err := NewWebhook(WebhookConfig{Name: "push", URL: server.URL, AllowPrivateAddresses: true})
			if err != nil {
				t.Fatal(err)
			}
			if tr, ok := server.Client().Transport.(*http.Transport); ok {
				w.transport.TLSClientConfig = tr.TLSClientConfig
			}
			p := push.Push{ID: uuid.New(), Message: []byte(`{}`)}
			if r := w.Send(t.Context(), p, 1); r.Outcome != push.Delivered {
				t.Fatalf("the first, which makes the connection: %+v", r)
			}
			frozen := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
				limit(got, time.Now()) // the trace of Send itself has set a later time by now
			}})
			if r := w.Send(frozen, p, 2); r.Outcome != push.Refused || r.Error != errHeldUp.Error() {
				t.Errorf("%+v", r)
			}
			if n := arrived.Load(); n != 1 {
				t.Errorf("%d requests arrived", n)
			}
			if r := w.Send(t.Context(), p, 3); r.Outcome != push.Delivered {
				t.Errorf("the next: %+v", r)
			}
		})
	}
}

// TestARequestThatHasBegunIsCarriedOn however long it takes.
func TestARequestThatHasBegunIsCarriedOn(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	conn, _ := dialTimely(func(context.Context, string, string) (net.Conn, error) { return ours, nil })(t.Context(), "", "")
	limit(httptrace.GotConnInfo{Conn: conn}, time.Now().Add(20*time.Millisecond))
	go func() {
		buf := make([]byte, 10)
		for {
			if _, err := theirs.Read(buf); err != nil {
				return
			}
		}
	}()
	if _, err := conn.Write([]byte("head")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond) // the limit passes
	if _, err := conn.Write([]byte("body")); err != nil {
		t.Error(err)
	}
	limit(httptrace.GotConnInfo{Conn: conn}, time.Now())
	if n, err := conn.Write([]byte("head")); err == nil || n != 0 {
		t.Errorf("the next request: %d, %v", n, err)
	}
}

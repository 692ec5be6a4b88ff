package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// askHalfClosed sends a request, closes this half of the connection, and reads the answer. The moment when net/http sees the end
// varies, so the test of one answer asks several times.
func (h *bundle) askHalfClosed(text string) (status int, body []byte) {
	h.t.Helper()
	c := h.dial(text)
	testenv.Check(h.t, c.Conn.(*net.TCPConn).CloseWrite())
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	testenv.Check(h.t, err)
	return res.StatusCode, body
}

// TestServer_HalfClosed: a caller that closes its half of the connection after the request gets its answer, and the request
// is carried out.
func TestServer_HalfClosed(t *testing.T) {
	t.Parallel()
	h := setup(t, calm)
	get := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + h.key + "\r\n\r\n"
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/v1/pushes", "/v1/recipients/r/quota", "/v1/refusals", "/v1/status"} {
		for range 10 {
			if status, body := h.askHalfClosed(get(path)); status != http.StatusOK {
				t.Fatalf("GET %s: status %d, %.200s", path, status, body)
			}
		}
	}
	for i := range 10 {
		push := fmt.Sprintf(`{"recipient":"r%d","channel":"log","message":{"body":"b"},"send_at":%q}`, i, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		status, body := h.askHalfClosed(h.post("/v1/pushes", fmt.Sprintf("Content-Length: %d\r\n", len(push))) + push)
		if status != http.StatusCreated {
			t.Fatalf("POST: status %d, %s", status, body)
		}
		var made struct{ ID string }
		testenv.Check(t, json.Unmarshal(body, &made))
		if status, body = h.askHalfClosed(get("/v1/pushes/" + made.ID)); status != http.StatusOK {
			t.Fatalf("GET of what was made: status %d, %s", status, body)
		}
	}
}

// TestServer_CallerGone: a request ends at once when its connection breaks. If the caller has only closed its half, a stream
// ends when it cannot be written.
func TestServer_CallerGone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		leave  func(*net.TCPConn) error
		serves func(w http.ResponseWriter, r *http.Request)
	}{
		"broken": {func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() }, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"closed": {(*net.TCPConn).Close, func(w http.ResponseWriter, _ *http.Request) {
			for out := http.NewResponseController(w); ; {
				if _, err := io.WriteString(w, "more\n"); err != nil {
					return
				}
				if out.Flush() != nil {
					return
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, ended := make(chan struct{}), make(chan struct{})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			testenv.Check(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			a := &App{}
			go func() {
				served <- a.serveOn(ctx, "test", l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(began)
					row.serves(w, r)
					close(ended)
				}), calm)
			}()
			c := (&bundle{t: t, addr: l.Addr().String()}).dial("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			<-began
			testenv.Check(t, row.leave(c.Conn.(*net.TCPConn)))
			<-ended
			cancel()
			testenv.Check(t, <-served)
		})
	}
}

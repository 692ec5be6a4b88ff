package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// servers are the ways to speak to a server.
var servers = map[string]func(*httptest.Server) Config{
	"http": func(s *httptest.Server) Config {
		s.Start()
		return Config{}
	},
	"https": func(s *httptest.Server) Config {
		s.StartTLS()
		return Config{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig}
	},
	"http2": func(s *httptest.Server) Config {
		s.EnableHTTP2 = true
		s.StartTLS()
		return Config{HTTP2: true, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig}
	},
}

// TestAWorkerThatWasFrozenSendsNothing: it freezes when it has a connection and
// is about to write. Nothing that a server would act on leaves it.
func TestAWorkerThatWasFrozenSendsNothing(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var arrived atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err == nil && string(body) == "body" {
					arrived.Add(1)
				}
			}))
			cfg := start(server)
			defer server.Close()
			cfg.Timeout, cfg.AllowPrivateAddresses = 3*time.Second, true
			client := New(cfg)
			defer client.Close()
			post := func(frozen time.Duration) error {
				req, _ := http.NewRequest(http.MethodPost, server.URL, io.NopCloser(strings.NewReader("body")))
				req.ContentLength = 4
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { time.Sleep(frozen) }})
				_, err := client.Do(ctx, req)
				return err
			}
			if err := post(0); err != nil {
				t.Fatalf("the first, which makes the connection: %v", err)
			}
			err := post(3100 * time.Millisecond)
			if f, ok := errors.AsType[*Failure](err); !ok || f.Sent || f.Reason != ErrHeldUp.Error() {
				t.Errorf("frozen: %v", err)
			}
			if n := arrived.Load(); n != 1 {
				t.Errorf("%d requests arrived", n)
			}
			if err := post(0); err != nil {
				t.Errorf("the next: %v", err)
			}
		})
	}
}

// TestAnAttemptIsWrittenInItsTime: each write is asked for, also the second; what
// was given up is not begun any more.
func TestAnAttemptIsWrittenInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := func() *attempt { return &attempt{until: time.Now().Add(time.Second)} }
		begun := soon()
		if err := errors.Join(begun.begin(), begun.begin()); err != nil || begun.giveUp() {
			t.Errorf("in time: %v, or it was given up", err)
		}
		fresh, givenUp := soon(), soon()
		if !givenUp.giveUp() || givenUp.begin() != ErrHeldUp {
			t.Error("what was given up is begun")
		}
		time.Sleep(time.Second)
		if begun.begin() != ErrHeldUp || begun.giveUp() || fresh.begin() != ErrHeldUp || !fresh.giveUp() {
			t.Error("too late, and written")
		}
	})
}

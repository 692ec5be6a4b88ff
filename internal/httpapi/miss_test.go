package httpapi

import (
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/rest"
)

// TestMiss_TakesTurns: those who ask for paths that do not exist have the turns of one tenant. Others do not wait for them.
func TestMiss_TakesTurns(t *testing.T) {
	t.Parallel()
	computing := bulkhead.NewComputing[uuid.UUID](nil)
	with := func(patience time.Duration) *rest.API {
		return New(nil, everything{}, Config{Computing: computing, RequestTimeout: patience}).(*rest.API)
	}
	hasty, a := with(50*time.Millisecond), with(time.Minute)
	busy, over := make(chan struct{}), make(chan struct{})
	for range runtime.GOMAXPROCS(0) {
		go func() {
			_ = computing.Do(t.Context(), uuid.Nil, func() error { busy <- struct{}{}; <-over; return nil })
		}()
		<-busy
	}
	for _, path := range []string{"/no/such/path", "/v1/no/such/path"} {
		ask(t, hasty, "GET", path, "").must(t, 429, "rate-limited")
	}
	ask(t, hasty, "DELETE", "/docs", "").must(t, 429, "rate-limited")
	ask(t, a, "GET", "/docs", "").must(t, 200)
	close(over)
	for range 100 {
		ask(t, a, "GET", "/no/such/path", "").must(t, 404, "not-found")
	}
	ask(t, a, "DELETE", "/docs", "").must(t, 405, "method-not-allowed")
}

// TestMiss_SlowCallers: callers that send no body, and read no answer, keep no turn.
func TestMiss_SlowCallers(t *testing.T) {
	t.Parallel()
	a := New(nil, everything{}, Config{Computing: bulkhead.NewComputing[uuid.UUID](nil), RequestTimeout: time.Minute}).(*rest.API)
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	for range 4 * runtime.GOMAXPROCS(0) {
		slow, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = slow.Close() })
		if _, err := fmt.Fprint(slow, "POST /no/such/path HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		ask(t, a, "GET", "/no/such/path", "").must(t, 404, "not-found")
	}
}

package httpapi

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// TestMiss_TakesTurns: those who ask for paths that do not exist have the turns of one tenant. Others do not wait for them.
func TestMiss_TakesTurns(t *testing.T) {
	t.Parallel()
	computing := bulkhead.NewComputing[uuid.UUID](nil)
	with := func(patience time.Duration) *api {
		return New(nil, everything{}, Config{Computing: computing, RequestTimeout: patience}).(*api)
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

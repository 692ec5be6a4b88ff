package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// neighbours are two tenants of one API, with a Redis of its own.
type neighbours struct {
	t          *testing.T
	app        *App
	api        http.Handler
	loud, calm string // their keys
}

func newNeighbours(t *testing.T, redisURL string) *neighbours {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sendquota.yaml")
	if err := os.WriteFile(path, []byte(`
api_limits:
  per_key: [{algorithm: sliding_window, limit: 1000000, per: 1m}]
  per_ip:  [{algorithm: token_bucket, limit: 1000000, per: 1s}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + redisURL, "SENDQUOTA_CONFIG=" + path})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	n := &neighbours{t: t, app: a, api: a.Handler()}
	for name, key := range map[string]*string{"loud": &n.loud, "calm": &n.calm} {
		tenant, _, err := a.store.CreateTenant(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if *key, err = a.store.CreateKey(t.Context(), tenant, push.Scopes, 0); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n *neighbours) post(key, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	n.api.ServeHTTP(rec, r)
	return rec
}

// worst are the takes that cost Redis most: sixteen limits with as many steps, or
// uses, as there can be, some that are allowed and some that are refused in the
// middle of them.
func worst() (bodies []string) {
	for _, form := range []string{
		`{"algorithm":"sliding_window","limit":900000%03d,"per":"1s","precision":"1ms"}`, `{"algorithm":"sliding_window","limit":1%03d,"per":"1s","precision":"1ms"}`,
		`{"algorithm":"sliding_log","limit":9%03d,"per":"10s"}`, `{"algorithm":"sliding_window","limit":10%03d,"per":"1s","precision":"1ms"}`,
	} {
		var limits []string
		for i := range 16 {
			limits = append(limits, fmt.Sprintf(form, i))
		}
		for _, cost := range []int{1, 7, 500} {
			bodies = append(bodies, fmt.Sprintf(`{"key":"loud","cost":%d,"limits":[%s]}`, cost, strings.Join(limits, ",")))
		}
	}
	return bodies
}

// storm has the loud tenant take 64 at a time while the calm one goes about its
// business, and returns what went wrong.
func (n *neighbours) storm() (wrong []string) {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		stop  atomic.Bool
		taken atomic.Int64
	)
	blame := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if len(wrong) < 5 {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	bodies, before := worst(), n.failures()
	for i := range 64 {
		all.Go(func() {
			for j := i; !stop.Load(); j++ {
				rec := n.post(n.loud, "/v1/limits/take", bodies[j%len(bodies)])
				if taken.Add(1); rec.Code != http.StatusOK && rec.Code != http.StatusTooManyRequests {
					blame("a take of the loud tenant: %d %s", rec.Code, rec.Body)
				}
			}
		})
	}
	for i := 0; i < 300 || taken.Load() < 2000; i++ {
		if rec := n.post(n.calm, "/v1/limits/take", `{"key":"calm","limits":[{"algorithm":"token_bucket","limit":1000000,"per":"1s"},{"algorithm":"sliding_log","limit":5,"per":"1h"}]}`); rec.Code != http.StatusOK {
			blame("take %d of the calm tenant: %d %s", i, rec.Code, rec.Body)
		}
		sendAt := time.Now().Add(time.Duration(i) * time.Hour).Format(time.RFC3339)
		if rec := n.post(n.calm, "/v1/pushes", fmt.Sprintf(`{"recipient":"user-%d","message":{},"send_at":%q}`, i%7, sendAt)); rec.Code != http.StatusCreated && rec.Code != http.StatusConflict {
			blame("push %d of the calm tenant: %d %s", i, rec.Code, rec.Body)
		}
	}
	stop.Store(true)
	all.Wait()
	if after := n.failures(); !slices.Equal(before, after) || len(after) != 3 {
		blame("%q after %q", after, before)
	}
	return wrong
}

// failures are the counters that must not move.
func (n *neighbours) failures() (counters []string) {
	rec := httptest.NewRecorder()
	n.api.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		for _, name := range []string{"sendquota_api_limits_skipped_total", "sendquota_limiter_errors_total", "sendquota_ledger_errors_total"} {
			if strings.HasPrefix(line, name) {
				counters = append(counters, strings.TrimSpace(line))
			}
		}
	}
	return counters
}

// standstill is the longest time that a question took, to a Redis that nobody
// else asks, while do ran: the time for which the machine itself stood still.
func standstill(t *testing.T, idle *redis.Client, do func()) (longest time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for began := time.Now(); ctx.Err() == nil; began = time.Now() {
			_ = idle.Ping(context.WithoutCancel(ctx)).Err()
			longest = max(longest, time.Since(began))
			time.Sleep(time.Millisecond)
		}
	}()
	do()
	stop()
	<-done
	return longest
}

// TestTenantLimits_Neighbours: all takes of the calm tenant are
// decided, no request passes the limits of callers without a decision, and the
// quota's copy in Redis never fails. All of them would, after a quarter of a
// second without an answer of Redis: where the machine stands still for nearly
// as long, it is tried again.
func TestTenantLimits_Neighbours(t *testing.T) {
	n := newNeighbours(t, testenv.OwnRedis(t).URL)
	idle := redis.NewClient(&redis.Options{Addr: strings.TrimSuffix(strings.TrimPrefix(testenv.OwnRedis(t).URL, "redis://"), "/0"), ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = idle.Close() })
	for range 10 {
		var wrong []string
		stood := standstill(t, idle, func() { wrong = n.storm() })
		switch {
		case len(wrong) == 0:
			return
		case stood < 60*time.Millisecond:
			t.Fatalf("%s", strings.Join(wrong, "\n"))
		}
		t.Logf("the machine stood still for %s; once more, after %s", stood, strings.Join(wrong, "\n"))
	}
	t.Skip("this machine is too busy to tell")
}

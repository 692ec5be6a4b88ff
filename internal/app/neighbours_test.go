package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/apikey"
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
	loudID     uuid.UUID
}

func setupNeighbours(t *testing.T, redisURL string) *neighbours {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sendquota.yaml")
	if err := os.WriteFile(path, []byte(`
api_limits:
  per_key: [{algorithm: sliding_window, limit: 1000000, per: 1m}]
  per_ip:  [{algorithm: token_bucket, limit: 1000000, per: 1s}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{"DATABASE_URL=" + testenv.SharedPostgres(t), "REDIS_URL=" + redisURL, "SENDQUOTA_CONFIG=" + path})
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
	n := &neighbours{t: t, app: a, api: a.handler()}
	for name, key := range map[string]*string{"loud": &n.loud, "calm": &n.calm} {
		tenant, _, err := a.store.CreateTenant(t.Context(), name+" "+uuid.NewString())
		if err != nil {
			t.Fatal(err)
		}
		if _, *key, err = a.store.CreateKey(t.Context(), apikey.NewKey{Tenant: tenant, Scopes: push.Scopes}); err != nil {
			t.Fatal(err)
		}
		if name == "loud" {
			n.loudID = tenant
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

// worst are the most expensive takes for Redis: sixteen limits with the maximum number of
// steps or uses, some allowed and some refused in the middle.
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

// failures are the counters of failed calls of Redis.
func (n *neighbours) failures() (counters []string) {
	rec := httptest.NewRecorder()
	n.api.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		for _, name := range []string{"sendquota_api_limits_skipped_total", "sendquota_limiter_errors_total", "sendquota_cache_errors_total"} {
			if strings.HasPrefix(line, name) {
				counters = append(counters, strings.TrimSpace(line))
			}
		}
	}
	return counters
}

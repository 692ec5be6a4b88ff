package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// limitCallers gives the bundle's API speed limits of callers.
func (b *bundle) limitCallers(l rest.CallerLimits) {
	b.api = New(b.service(b.store, testPolicy()), b.store, Config{RequestTimeout: patience, Now: b.now, Limiter: b.limiter(), Callers: l})
}

func perHour(n int) []ratelimit.Limit {
	return []ratelimit.Limit{{Algorithm: ratelimit.SlidingLog, Limit: n, Per: time.Hour}}
}

// from makes a request from an address, with the tenant's key unless the headers say otherwise.
func (b *bundle) from(address string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/v1/pushes", nil)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+b.key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	b.api.ServeHTTP(rec, r)
	return rec
}

// TestCallerLimits by each algorithm: the answers have the state of the limits, and a refusal has the time to come back, which
// is true.
func TestCallerLimits(t *testing.T) {
	t.Parallel()
	for _, algorithm := range ratelimit.Algorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			limit := ratelimit.Limit{Algorithm: algorithm, Limit: 2, Per: 10 * time.Second}
			if algorithm == ratelimit.LeakyBucket {
				limit.Burst = 2
			}
			b.limitCallers(rest.CallerLimits{PerKey: []ratelimit.Limit{limit}, PerIP: perHour(100)})
			for left := 1; left >= 0; left-- {
				r := b.from("192.0.2.1:1")
				policy, standing := r.Header().Get("RateLimit-Policy"), r.Header().Get("RateLimit")
				if r.Code != 200 || policy != `"per-ip";q=100;w=3600, "per-key";q=2;w=10` {
					t.Fatalf("%d, policy %s", r.Code, policy)
				}
				if !strings.HasPrefix(standing, `"per-ip";r=`+strconv.Itoa(98+left)+`;t=3600, "per-key";r=`+strconv.Itoa(left)+";t=") {
					t.Errorf("standing %s", standing)
				}
			}
			r := b.from("192.0.2.1:1")
			after, _ := strconv.Atoi(r.Header().Get("Retry-After"))
			if r.Code != 429 || after < 1 || after > 15 || !strings.Contains(r.Body.String(), `"type":"urn:sendquota:problem:rate-limited"`) ||
				!strings.Contains(r.Body.String(), "per-key (2 requests per 10 seconds)") {
				t.Fatalf("%d, Retry-After %d: %s", r.Code, after, r.Body)
			}
			if standing := r.Header().Get("RateLimit"); !strings.HasPrefix(standing, `"per-ip";r=98`) {
				t.Errorf("the refused request was charged: %s", standing)
			}
			testenv.Sleep(t, time.Duration(after)*time.Second) // as the answer says, by Redis' clock, which no test can move
			if r := b.from("192.0.2.1:1"); r.Code != 200 {
				t.Errorf("after %d s: %d %s", after, r.Code, r.Body)
			}
		})
	}
}

// TestCallerLimits_Separate: limits are separate by key and by address, and a refusal by one charges none of the others.
func TestCallerLimits_Separate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limitCallers(rest.CallerLimits{PerKey: perHour(2), PerIP: perHour(3)})
	other := []string{"Authorization", "Bearer " + b.other}
	for i, row := range []struct {
		address string
		headers []string
		want    int
	}{
		{"192.0.2.1:1", nil, 200},
		{"192.0.2.1:2", nil, 200},
		{"192.0.2.1:3", nil, 429}, // the key's two are used
		{"192.0.2.2:1", nil, 429}, // from wherever
		{"192.0.2.1:4", other, 200},
		{"192.0.2.1:5", other, 429}, // the address' three are used, the key's are not
		{"192.0.2.2:1", other, 200},
		{"192.0.2.2:1", other, 429},
		{"192.0.2.2:1", []string{"Authorization", "Bearer sq_guessed"}, 401},
		{"192.0.2.2:1", []string{"Authorization", ""}, 401},
		{"192.0.2.2:1", []string{"Authorization", "Bearer sq_guessed"}, 429}, // the address' three are used
		{"192.0.2.2:1", []string{"Authorization", ""}, 429},
	} {
		if r := b.from(row.address, row.headers...); r.Code != row.want {
			t.Errorf("request %d: %d, want %d: %s", i, r.Code, row.want, r.Body)
		}
	}
	for _, open := range []string{"/healthz", "/openapi.json", "/docs"} {
		ask(t, b.api, "GET", open, "").must(t, 200)
	}
}

// TestMiss_Charged: a request for a path or a method that there is not, below /v1, counts like any other, against the
// key, too, if that is known. It stays what it is until a limit refuses it.
func TestMiss_Charged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limitCallers(rest.CallerLimits{PerKey: perHour(3), PerIP: perHour(6)})
	for i, row := range []struct {
		method, path, key string
		status            int
		name, standing    string
	}{
		{"GET", "/v1/nothing", b.key, 404, "not-found", `"per-ip";r=5;t=3600, "per-key";r=2;t=3600`},
		{"PUT", "/v1/pushes", b.key, 405, "method-not-allowed", `"per-ip";r=4;t=3600, "per-key";r=1;t=3600`},
		{"GET", "/v1/", "", 404, "not-found", `"per-ip";r=3;t=3600`},
		{"GET", "/v1", "sq_guessed", 404, "not-found", `"per-ip";r=2;t=3600`},
		{"DELETE", "/v1/quota/check", b.key, 405, "method-not-allowed", `"per-ip";r=1;t=3600, "per-key";r=0;t=3600`},
		{"GET", "/v1/nothing", b.key, 429, "rate-limited", `"per-ip";r=1;t=3600, "per-key";r=0;t=3600`},
		{"GET", "/v1/pushes", b.key, 429, "rate-limited", `"per-ip";r=1;t=3600, "per-key";r=0;t=3600`},
		{"GET", "/nothing", "", 404, "not-found", ""}, // not below /v1
		{"PUT", "/healthz", "", 405, "method-not-allowed", ""},
		{"GET", "/v1x", "", 404, "not-found", ""},
		{"PATCH", "/v1/pushes", "", 405, "method-not-allowed", `"per-ip";r=0;t=3600`},
		{"GET", "/v1/nothing", "", 429, "rate-limited", `"per-ip";r=0;t=3600`},
		{"PUT", "/v1/pushes", "sq_guessed again", 429, "rate-limited", `"per-ip";r=0;t=3600`},
	} {
		var headers []string
		if row.key != "" {
			headers = []string{"Authorization", "Bearer " + row.key}
		}
		r := ask(t, b.api, row.method, row.path, "", headers...)
		if r.status != row.status || r.body["type"] != "urn:sendquota:problem:"+row.name {
			t.Errorf("row %d: %d %s", i, r.status, r.text)
		}
		if standing := r.header.Get("RateLimit"); standing != row.standing {
			t.Errorf("row %d stands at %s, want %s", i, standing, row.standing)
		}
		if (row.status == 405) != (r.header.Get("Allow") != "") || (row.status == 429) != (r.header.Get("Retry-After") != "") {
			t.Errorf("row %d: %v", i, r.header)
		}
	}
}

// TestMiss_NeedsNoKey: where keys are not limited, a miss asks for no key.
func TestMiss_NeedsNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := &countedKeys{Store: b.store}
	for _, limits := range []rest.CallerLimits{{}, {PerIP: perHour(5)}} {
		b.api = New(b.service(b.store, testPolicy()), keys, Config{RequestTimeout: patience, Limiter: b.limiter(), Callers: limits})
		ask(t, b.api, "GET", "/v1/nothing", "", "Authorization", "Bearer "+b.key).must(t, 404, "not-found")
	}
	if n := keys.asked.Load(); n != 0 {
		t.Errorf("%d questions", n)
	}
}

// countedKeys counts the questions after keys.
type countedKeys struct {
	*store.Store
	asked atomic.Int64
}

func (c *countedKeys) Key(ctx context.Context, hash [32]byte) (push.Caller, error) {
	c.asked.Add(1)
	return c.Store.Key(ctx, hash)
}

// TestCallerLimits_BlockGuesses: guessed keys cost no queries once the address has used up its limit.
func TestCallerLimits_BlockGuesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := &countedKeys{Store: b.store}
	b.api = New(b.service(b.store, testPolicy()), keys, Config{RequestTimeout: patience, Limiter: b.limiter(), Callers: rest.CallerLimits{PerIP: perHour(5)}})
	refused := 0
	for i := range 50 {
		if b.from("192.0.2.1:1", "Authorization", fmt.Sprint("Bearer sq_guess", i)).Code == 429 {
			refused++
		}
	}
	if n := keys.asked.Load(); n != 5 || refused != 45 {
		t.Errorf("%d questions, %d refused; want 5, 45", n, refused)
	}
}

// TestCallerLimits_Concurrent: exactly as many pass as may, although two limits stand together, and the wider one is
// charged exactly this number of times.
func TestCallerLimits_Concurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limitCallers(rest.CallerLimits{PerKey: perHour(20), PerIP: perHour(30)})
	count := func(headers ...string) int {
		var (
			passed  atomic.Int64
			callers sync.WaitGroup
		)
		for range 64 {
			callers.Go(func() {
				if b.from("192.0.2.1:1", headers...).Code == 200 {
					passed.Add(1)
				}
			})
		}
		callers.Wait()
		return int(passed.Load())
	}
	if n := count(); n != 20 {
		t.Errorf("%d passed, want 20", n)
	}
	if n := count("Authorization", "Bearer "+b.other); n != 10 {
		t.Errorf("%d of another key passed, want the 10 that are left to the address", n)
	}
}

// TestCallerLimits_PassWithoutRedis: callers pass at once while Redis is away, and it is counted.
func TestCallerLimits_PassWithoutRedis(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var skipped atomic.Int64
	var dials atomic.Int64
	away := redisclient.Open(redisclient.Options{MaxRetries: -1, DialerRetries: 1, Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, syscall.ECONNREFUSED
	}})
	defer away.Close()
	b.api = New(b.service(b.store, testPolicy()), b.store, Config{
		Log: slog.New(slog.DiscardHandler), Limiter: ratelimit.New(away, ratelimit.Config{}),
		Callers: rest.CallerLimits{PerKey: perHour(1), PerIP: perHour(1), Skipped: func() { skipped.Add(1) }},
	})
	began := time.Now()
	for range 20 {
		if r := b.from("192.0.2.1:1"); r.Code != http.StatusOK || r.Header().Get("RateLimit") != "" {
			t.Errorf("%d %v", r.Code, r.Header())
		}
	}
	if most := 2 + int64(time.Since(began)/time.Second); dials.Load() > most || skipped.Load() != 20 { // it is asked once a second
		t.Errorf("Redis was dialed %d times, and %d requests were counted", dials.Load(), skipped.Load())
	}
}

// TestClientAddress_IgnoresForgedHops, whatever header they come in.
func TestClientAddress_IgnoresForgedHops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limitCallers(rest.CallerLimits{PerIP: perHour(1), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if r := b.from("192.0.2.1:1"); r.Code != 200 {
		t.Fatal(r.Code)
	}
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip"} {
		for _, value := range []string{"198.51.100.7", "10.0.0.1", "127.0.0.1", "for=198.51.100.7"} {
			if r := b.from("192.0.2.1:1", header, value); r.Code != 429 {
				t.Errorf("%s: %s gets %d", header, value, r.Code)
			}
		}
	}
}

package app

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestRedisClients_Apart: when Redis fails for one part, the others go on: limits of tenants are decided, callers are
// limited, and the cache answers. On a busy machine an exchange may be too slow, but not each of several.
func TestRedisClients_Apart(t *testing.T) {
	for name, client := range map[string]func(redisClients) redisclient.Client{
		"none":          nil,
		"tenant limits": func(c redisClients) redisclient.Client { return c.tenantLimits },
		"caller limits": func(c redisClients) redisclient.Client { return c.callerLimits },
		"cache":         func(c redisClients) redisclient.Client { return c.cache },
		"queue":         func(c redisClients) redisclient.Client { return c.queue },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := setupNeighbours(t, testenv.OwnRedis(t).URL)
			if client != nil {
				if err := client(n.app.redis).Close(); err != nil { // each exchange fails from now on
					t.Fatal(err)
				}
			}
			const take = `{"key":"k","limits":[{"algorithm":"token_bucket","limit":1000,"per":"1h"}]}`
			pushes, before := 0, map[string]string{}
			faults := func() (all []string) {
				if code := n.post(n.calm, "/v1/limits/take", take).Code; code != map[bool]int{true: 503, false: 200}[name == "tenant limits"] {
					all = append(all, fmt.Sprint("take: ", code))
				}
				pushes++
				rec := n.post(n.calm, "/v1/pushes", `{"recipient":"user-1","message":{},"send_at":"`+time.Now().Add(time.Duration(pushes)*2*time.Hour).Format(time.RFC3339)+`"}`)
				if rec.Code != http.StatusCreated {
					all = append(all, fmt.Sprintf("push: %d %s", rec.Code, rec.Body))
				}
				if limited := rec.Header().Get("RateLimit") != ""; limited != (name != "caller limits") {
					all = append(all, fmt.Sprintf("the caller is limited: %v", limited))
				}
				for _, counter := range n.failures() {
					part := map[bool]string{strings.HasPrefix(counter, "sendquota_cache"): "cache", strings.HasPrefix(counter, "sendquota_api"): "caller limits"}[true]
					series, count, _ := strings.Cut(counter, " ")
					was := cmp.Or(before[series], "0")
					before[series] = count
					if part == name && count == "0" || part != "" && part != name && count != was {
						all = append(all, counter)
					}
				}
				return all
			}
			for range 3 {
				found := faults()
				for try := 0; len(found) > 0 && try < 4; try++ {
					testenv.Sleep(t, 1100*time.Millisecond) // a cooldown
					found = faults()
				}
				for _, fault := range found {
					t.Error(fault)
				}
			}
		})
	}
}

// TestTenantLimits_PartOfTenant: while Redis is slow, a tenant that needs more than its part of Redis' time is refused,
// and another tenant is not.
func TestTenantLimits_PartOfTenant(t *testing.T) {
	t.Parallel()
	w, url := testenv.Proxy(t, testenv.OwnRedis(t).URL)
	n := setupNeighbours(t, url)
	var (
		all           sync.WaitGroup
		done          atomic.Bool
		refused, calm atomic.Int64
		bodies        = worst()
	)
	all.Go(func() {
		for !done.Load() { // an exchange takes a tenth of a second, and none takes as long as a time-out
			w.Freeze()
			time.Sleep(100 * time.Millisecond)
			w.Thaw()
			time.Sleep(time.Millisecond)
		}
	})
	all.Go(func() {
		for !done.Load() {
			if code := n.post(n.calm, "/v1/limits/take", `{"key":"k","limits":[{"algorithm":"token_bucket","limit":1000000,"per":"1s"}]}`).Code; code == http.StatusTooManyRequests {
				calm.Add(1)
			}
		}
	})
	for deadline := time.Now().Add(time.Minute); refused.Load() == 0 && time.Now().Before(deadline); {
		var takes sync.WaitGroup
		for i := range 64 {
			takes.Go(func() {
				if n.post(n.loud, "/v1/limits/take", bodies[i%len(bodies)]).Code == http.StatusTooManyRequests {
					refused.Add(1)
				}
			})
		}
		takes.Wait()
	}
	done.Store(true)
	all.Wait()
	if refused.Load() == 0 || calm.Load() > 0 {
		t.Errorf("%d takes of the loud tenant are refused, and %d of the calm one", refused.Load(), calm.Load())
	}
}

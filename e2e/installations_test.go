package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestInstallations_OneRedis: each has its own wake-ups, so that what it accepted
// leaves on time. Nothing would find what is left: the lease of a wake-up is
// ten minutes. All that either writes bears its own name.
func TestInstallations_OneRedis(t *testing.T) {
	t.Parallel()
	r := newOwnRedis(t)
	config := strings.Replace(usualConfig, "delivery: {", "delivery: {arm_lease: 10m, ", 1) +
		"api_limits: {per_ip: [{algorithm: fixed_window, limit: 100000, per: 1h}]}\n"
	var both []*bundle
	for range 2 {
		b := setupWith(t, options{redis: r.URL, config: config})
		b.StartAPI()
		b.Start("worker")
		both = append(both, b)
	}
	for _, in := range []time.Duration{0, 2 * time.Second} {
		var due [2]map[string]time.Time
		for i, b := range both {
			due[i] = b.accept("r-"+in.String(), in, object{})
		}
		for i, b := range both {
			b.wantLeft(due[i])
		}
	}
	for i, b := range both {
		if n := len(b.provider.Arrivals()); n != 12 {
			t.Errorf("provider %d was asked %d times for 12 pushes", i, n)
		}
	}

	o, err := redis.ParseURL(r.URL)
	testenv.Check(t, err)
	rdb := redis.NewClient(o)
	defer rdb.Close()
	for n, b := range both { // has a recipient's bookings in its cache, unless Redis was late when they were first looked up
		at := time.Now().Add(time.Hour)
		b.until("the cache has bookings", func() bool {
			at = at.Add(time.Hour)
			b.call("POST", "/v1/pushes", object{"recipient": "warm", "send_at": at.Format(time.RFC3339), "message": object{}})
			return len(rdb.Keys(t.Context(), "sq:*:bookings").Val()) > n
		})
	}
	queues := rdb.SMembers(t.Context(), "asynq:queues").Val()
	names := map[string]bool{}
	for _, queue := range queues {
		names[strings.Split(queue, "-")[1]] = true
	}
	if len(names) != 2 || len(queues) != 2 {
		t.Errorf("the queues are %v", queues)
	}
	seen := ""
	for _, key := range rdb.Keys(t.Context(), "sq:*").Val() {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(key, "sq:"), "{push-"), ":")
		if name, _, _ = strings.Cut(name, "-"); !names[name] {
			t.Errorf("the key %s bears no name of %v", key, names)
		}
		seen += key + "\n"
	}
	for _, kind := range []string{":limit:", ":pace:", ":bookings"} {
		if !strings.Contains(seen, kind) {
			t.Errorf("there is no key of %s among\n%s", kind, seen)
		}
	}
}

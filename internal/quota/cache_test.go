package quota_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// client connects as the programs do, but leaves timeouts to the cache.
func client(t testing.TB, url string) redisclient.Client {
	t.Helper()
	return testenv.RedisClient(t, url, func(o *redisclient.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries, o.ContextTimeoutEnabled = time.Minute, time.Minute, time.Minute, 1, true
	})
}

func newCache(t testing.TB) (*quota.Cache, redisclient.Client) {
	t.Helper()
	rdb := client(t, testenv.Redis(t))
	return quota.NewCache(rdb, redisscript.Config{Timeout: time.Minute, OnError: func(err error) { t.Error(err) }}), rdb
}

func anybody() quota.Recipient { return quota.Recipient{Tenant: uuid.New(), ID: "anna"} }

// load loads a recipient into the cache.
func load(t testing.TB, l *quota.Cache, r quota.Recipient, bookings ...quota.Booking) {
	t.Helper()
	if res := l.Reserve(r, quota.Booking{ID: uuid.New(), At: noon}, nil); res.State != quota.Cold || !res.Fill {
		t.Fatalf("reserve while cold: %+v", res)
	}
	l.Fill(r, bookings, false)
	flush(t, l)
}

// flush waits until all background updates have run.
func flush(t testing.TB, l *quota.Cache) {
	t.Helper()
	testenv.Check(t, l.Flush(t.Context()))
}

// loaded lists the cached bookings, and reports whether the recipient is loaded.
func loaded(t testing.TB, rdb redisclient.Client) (ids []string, ok bool) {
	t.Helper()
	keys := rdb.Keys(context.Background(), "*:bookings").Val()
	if len(keys) == 0 {
		return nil, false
	}
	members := rdb.ZRangeArgs(context.Background(), redis.ZRangeArgs{Key: keys[0], Start: "(-inf", Stop: "+inf", ByScore: true}).Val()
	if slices.Contains(members, "crowded") {
		return nil, false
	}
	ok = slices.Contains(members, "loaded")
	return slices.DeleteFunc(members, func(m string) bool { return m == "loaded" }), ok
}

// TestCache_Story follows a recipient who may get one push per minute.
func TestCache_Story(t *testing.T) {
	t.Parallel()
	l, rdb := newCache(t)
	anna, p := anybody(), per(1, time.Minute)
	first, second := booking(1, noon), booking(2, noon.Add(59*time.Second))
	reserve := func(b quota.Booking, want quota.State, fill bool) {
		t.Helper()
		res := l.Reserve(anna, b, p)
		if res.State != want || res.Fill != fill {
			t.Fatalf("reserve %s: %s, fill %v", b.At.Sub(noon), res.State, res.Fill)
		}
	}

	// Nothing is loaded. Postgres books the first push, and fills the cache.
	reserve(first, quota.Cold, true)
	l.Fill(anna, []quota.Booking{first}, false)
	flush(t, l)

	// The second finds no place.
	reserve(second, quota.Blocked, false)

	// A second later there is a place. A repetition changes nothing.
	second.At = noon.Add(time.Minute)
	reserve(second, quota.Free, false)
	reserve(second, quota.Free, false)
	// The same push at another time: only Postgres knows which time is right.
	reserve(quota.Booking{ID: second.ID, At: noon.Add(time.Hour)}, quota.Cold, false)
	if ids, _ := loaded(t, rdb); len(ids) != 2 {
		t.Errorf("the cache holds %v", ids)
	}

	// The first is canceled, the second is moved into its place.
	l.Release(anna, first)
	l.Hold(anna, quota.Booking{ID: second.ID, At: noon})
	reserve(booking(3, noon), quota.Blocked, false)
	reserve(booking(3, noon.Add(time.Minute)), quota.Free, false)

	// Postgres disagrees: the recipient is forgotten.
	l.Forget(anna)
	flush(t, l)
	reserve(booking(4, noon.Add(time.Hour)), quota.Cold, true)
}

func TestCache_RecipientsApart(t *testing.T) {
	t.Parallel()
	l, _ := newCache(t)
	tenant, p := uuid.New(), per(1, time.Minute)
	load(t, l, quota.Recipient{Tenant: tenant, ID: "anna"}, booking(1, noon))
	for _, r := range []quota.Recipient{{Tenant: tenant, ID: "bert"}, {Tenant: uuid.New(), ID: "anna"}} {
		if res := l.Reserve(r, booking(2, noon), p); res.State != quota.Cold || !res.Fill {
			t.Errorf("%+v: %+v", r, res)
		}
	}
}

func TestReserve_Concurrent(t *testing.T) {
	t.Parallel()
	l, _ := newCache(t)
	anna := anybody()
	load(t, l, anna)
	var free atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if l.Reserve(anna, quota.Booking{ID: uuid.New(), At: noon}, per(3, time.Minute)).State == quota.Free {
				free.Add(1)
			}
		})
	}
	wg.Wait()
	if free.Load() != 3 {
		t.Errorf("%d pushes got one of 3 places", free.Load())
	}
}

// TestCache_Keys checks that keys contain no personal data and have the format of the operations guide, which old and
// new programs share during an upgrade.
func TestCache_Keys(t *testing.T) {
	t.Parallel()
	l, rdb := newCache(t)
	tenant := uuid.New()
	shape := regexp.MustCompile(`^(sq:\{` + tenant.String() + `:[A-Za-z0-9_-]{22}\}):bookings$`)
	for _, id := range []string{"a", "anna@example.com", strings.Repeat("long", 32), "{}:*"} {
		r := quota.Recipient{Tenant: tenant, ID: id}
		load(t, l, r, booking(1, noon))
		l.Release(r, booking(1, noon))
		l.Release(quota.Recipient{Tenant: tenant, ID: id + "!"}, booking(1, noon)) // cold
	}
	keys := rdb.Keys(t.Context(), "*").Val()
	if len(keys) != 8 {
		t.Errorf("8 recipients have the keys %q", keys)
	}
	for _, key := range keys {
		if !shape.MatchString(key) {
			t.Errorf("key %q", key)
		}
	}
}

// TestCache_Expiry checks that a recipient's bookings expire a fixed time after they are loaded.
func TestCache_Expiry(t *testing.T) {
	t.Parallel()
	l, rdb := newCache(t)
	anna := anybody()
	l.Reserve(anna, booking(1, noon), nil)
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("a cold reserve left %d keys", n)
	}
	l.Release(anna, booking(2, noon))
	if ttl := rdb.PTTL(t.Context(), rdb.Keys(t.Context(), "*").Val()[0]).Val(); ttl <= 0 || ttl > 5*time.Second {
		t.Errorf("a change is kept for %s", ttl)
	}
	l.Fill(anna, []quota.Booking{booking(1, noon)}, false)
	flush(t, l)
	key := rdb.Keys(t.Context(), "*").Val()[0]
	if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 9*time.Minute || ttl > 10*time.Minute {
		t.Errorf("the cache lives for %s", ttl)
	}
	rdb.PExpire(t.Context(), key, time.Minute)
	l.Reserve(anna, booking(2, noon.Add(time.Hour)), per(1, time.Minute))
	l.Reserve(anna, booking(3, noon.Add(time.Hour)), per(1, time.Minute))
	l.Hold(anna, booking(1, noon.Add(2*time.Hour)))
	l.Release(anna, booking(2, noon))
	l.Add(anna, booking(4, noon))
	l.Fill(anna, []quota.Booking{booking(5, noon)}, false)
	flush(t, l)
	if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("after some use it lives for %s", ttl)
	}
}

// BenchmarkCacheMemory measures the memory of a recipient's bookings in Redis.
func BenchmarkCacheMemory(b *testing.B) {
	for _, n := range []int{1, 2, 10} {
		b.Run(fmt.Sprint(n, " bookings"), func(b *testing.B) {
			l, rdb := newCache(b)
			var all []quota.Booking
			for i := range n {
				all = append(all, booking(i, noon.Add(time.Duration(i)*time.Hour)))
			}
			load(b, l, anybody(), all...)
			if ids, _ := loaded(b, rdb); len(ids) != n {
				b.Fatal(ids)
			}
			b.ReportMetric(float64(rdb.MemoryUsage(b.Context(), rdb.Keys(b.Context(), "*").Val()[0]).Val()), "B/recipient")
			b.ReportMetric(0, "ns/op")
		})
	}
}

package quota_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// bundle is a cache on a Redis that the test may break. Its clock only moves when the test moves it.
type bundle struct {
	*quota.Cache
	redis *devstack.Server
	anna  quota.Recipient
	p     quota.Policy

	mu     sync.Mutex
	clock  time.Time
	errors int
}

// setup returns a cache with a timeout for answers.
func setup(t *testing.T, timeout time.Duration) *bundle {
	o := &bundle{redis: testenv.OwnRedis(t), anna: anybody(), p: per(1, time.Minute), clock: noon}
	o.Cache = quota.NewCache(client(t, o.redis.URL), redisscript.Config{
		Timeout: timeout,
		Now:     func() time.Time { o.mu.Lock(); defer o.mu.Unlock(); return o.clock },
		OnError: func(error) { o.mu.Lock(); defer o.mu.Unlock(); o.errors++ },
	})
	load(t, o.Cache, o.anna, booking(1, noon))
	return o
}

// pass moves the clock.
func (o *bundle) pass(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clock = o.clock.Add(d)
}

func (o *bundle) want(t *testing.T, r quota.Recipient, state quota.State, fill bool, errors int) {
	t.Helper()
	res := o.Reserve(r, quota.Booking{ID: uuid.New(), At: noon}, o.p)
	if res.State != state || res.Fill != fill {
		t.Fatalf("reserve: %s, fill %v; want %s, %v", res.State, res.Fill, state, fill)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.errors != errors {
		t.Errorf("reported %d errors, want %d", o.errors, errors)
	}
}

// TestCache_WithoutRedis checks that every recipient is cold, that one call per second tries Redis again, and that
// callers are not asked to fill.
func TestCache_WithoutRedis(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]struct {
		stop, start func(*testing.T, *devstack.Server) error
	}{
		"hangs": {
			func(_ *testing.T, s *devstack.Server) error { return s.Pause() },
			func(_ *testing.T, s *devstack.Server) error { return s.Resume() },
		},
		"is dead": {
			func(_ *testing.T, s *devstack.Server) error { return s.Kill() },
			func(t *testing.T, s *devstack.Server) error { return s.Restart(t.Context()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := setup(t, 4*time.Second)
			bert := anybody() // stays unchanged
			load(t, o.Cache, bert, booking(1, noon))
			o.want(t, o.anna, quota.Blocked, false, 0)
			if err := away.stop(t, o.redis); err != nil {
				t.Fatal(err)
			}
			o.want(t, anybody(), quota.Cold, false, 1)
			for range 100 { // no call reaches Redis
				o.want(t, o.anna, quota.Cold, false, 1)
			}
			o.Fill(o.anna, nil, false)
			o.Add(o.anna, booking(2, noon))
			o.Hold(o.anna, booking(2, noon))
			o.Release(o.anna, booking(1, noon))
			o.Forget(o.anna)
			flush(t, o.Cache)
			o.pass(time.Second - 1)
			o.want(t, anybody(), quota.Cold, false, 1)
			o.pass(1)
			o.want(t, anybody(), quota.Cold, false, 2)

			if err := away.start(t, o.redis); err != nil {
				t.Fatal(err)
			}
			o.want(t, bert, quota.Cold, false, 2)
			o.pass(time.Second)
			if name == "hangs" { // and has kept its data
				o.want(t, bert, quota.Blocked, false, 2)
				return
			}
			o.want(t, bert, quota.Cold, true, 2)
			load(t, o.Cache, bert, booking(1, noon))
			o.want(t, bert, quota.Blocked, false, 2)
		})
	}
}

// TestCache_ScriptFlush covers a Redis that has lost the scripts.
func TestCache_ScriptFlush(t *testing.T) {
	t.Parallel()
	o := setup(t, time.Minute)
	rdb := client(t, o.redis.URL)

	if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	o.want(t, o.anna, quota.Blocked, false, 0)

	// Many calls of every script at once.
	if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		r := quota.Recipient{Tenant: o.anna.Tenant, ID: string(rune('a' + i))}
		wg.Go(func() { o.want(t, o.anna, quota.Blocked, false, 0) })
		wg.Go(func() { load(t, o.Cache, r, booking(1, noon)) })
		wg.Go(func() { o.Forget(anybody()) })
		wg.Go(func() { o.Release(o.anna, quota.Booking{ID: uuid.New()}) })
	}
	wg.Wait()
	flush(t, o.Cache)
	o.want(t, o.anna, quota.Blocked, false, 0)

	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	o.want(t, o.anna, quota.Cold, true, 0)
	load(t, o.Cache, o.anna, booking(1, noon))
	o.want(t, o.anna, quota.Blocked, false, 0)
}

// TestCache_BrokenRecipient checks that a broken key makes its recipient cold, and no other.
func TestCache_BrokenRecipient(t *testing.T) {
	t.Parallel()
	o := setup(t, 4*time.Second)
	rdb, broken := client(t, o.redis.URL), anybody()
	load(t, o.Cache, broken, booking(1, noon))
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		if strings.Contains(key, broken.Tenant.String()) {
			rdb.Set(t.Context(), key, "what is this?", 0)
		}
	}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if n%2 == 0 {
				o.Reserve(broken, booking(n, noon), o.p)
			} else if res := o.Reserve(o.anna, quota.Booking{ID: uuid.New(), At: noon}, o.p); res.State != quota.Blocked {
				t.Errorf("another recipient is %s", res.State)
			}
		})
	}
	all.Wait()
	o.want(t, broken, quota.Cold, false, 11)
	o.want(t, o.anna, quota.Blocked, false, 11)
}

// TestCache_HeavyCalls checks that calls that may read many bookings share an exchange with fewer others.
func TestCache_HeavyCalls(t *testing.T) {
	t.Parallel()
	w, through := testenv.Proxy(t, testenv.OwnRedis(t).URL)
	var most atomic.Int64
	l := quota.NewCache(client(t, through), redisscript.Config{Timeout: time.Minute, Observe: func(calls int) {
		if n := int64(calls); n > most.Load() {
			most.Store(n)
		}
	}})
	together := func(p quota.Policy) int64 {
		most.Store(0)
		w.Freeze()
		var all, begun sync.WaitGroup
		begun.Add(400)
		for range 400 {
			all.Go(func() {
				begun.Done()
				l.Reserve(anybody(), quota.Booking{ID: uuid.New(), At: noon}, p)
			})
		}
		begun.Wait()
		time.Sleep(100 * time.Millisecond) // the calls that have begun gather
		w.Thaw()
		all.Wait()
		return most.Load()
	}
	light := together(per(1, time.Minute))
	heavy := together(quota.Policy{{Name: "a", Limit: 500, Window: time.Hour}, {Name: "b", Limit: 500, Window: 24 * time.Hour}})
	if heavy > 5 || light < 5*heavy {
		t.Errorf("%d heavy calls were sent together, and %d light ones", heavy, light)
	}
}

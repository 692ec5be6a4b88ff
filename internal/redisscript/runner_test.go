package redisscript_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// count adds a number to a counter and answers the counter before and after.
var count = redisscript.NewScript(`
local after = redis.call('INCRBY', KEYS[1], ARGV[1])
return {after - ARGV[1], after}`)

// bundle is a runner on a Redis of its own. Its clock stands still unless the test moves it.
type bundle struct {
	*redisscript.Runner
	redis *devstack.Server
	rdb   redisclient.Client

	mu      sync.Mutex
	clock   time.Time
	errors  []error
	largest int // number of calls in an exchange
}

func setup(t *testing.T, cfg redisscript.Config) *bundle {
	t.Helper()
	b := &bundle{redis: testenv.OwnRedis(t), clock: time.Unix(1_800_000_000, 0)}
	b.rdb = client(t, b.redis.URL)
	cfg.Now = func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.clock }
	cfg.OnError = func(err error) { b.mu.Lock(); defer b.mu.Unlock(); b.errors = append(b.errors, err) }
	cfg.Observe = func(calls int) { b.mu.Lock(); defer b.mu.Unlock(); b.largest = max(b.largest, calls) }
	b.Runner = redisscript.New(b.rdb, "test", cfg)
	return b
}

func client(t *testing.T, url string) redisclient.Client {
	t.Helper()
	return testenv.RedisClient(t, url, func(o *redisclient.Options) {
		o.DialTimeout, o.ReadTimeout, o.MaxRetries, o.ContextTimeoutEnabled = time.Minute, time.Minute, 1, true
	})
}

func (b *bundle) pass(d time.Duration) { b.mu.Lock(); defer b.mu.Unlock(); b.clock = b.clock.Add(d) }

func (b *bundle) failures() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.errors) }

// add adds to the counter.
func (b *bundle) add(t *testing.T, n int) ([]int64, error) {
	return b.Run(t.Context(), count.Call([]string{"counter"}, n))
}

func (b *bundle) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRun_ScriptFlush: while Redis forgets its scripts again and again, every call is run, and none twice.
func TestRun_ScriptFlush(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: time.Minute})
	other := redisscript.NewScript(`return {7}`)
	var all sync.WaitGroup
	for n := range 200 {
		if n%20 == 0 {
			b.must(t, b.rdb.ScriptFlush(t.Context()).Err())
		}
		all.Go(func() {
			if answer, err := b.add(t, 1); err != nil || len(answer) != 2 || answer[1]-answer[0] != 1 {
				t.Errorf("%v, %v", answer, err)
			}
		})
		all.Go(func() {
			if answer, err := b.Run(t.Context(), other.Call(nil)); err != nil || !slices.Equal(answer, []int64{7}) {
				t.Errorf("%v, %v", answer, err)
			}
		})
	}
	all.Wait()
	b.must(t, b.rdb.ScriptFlush(t.Context()).Err())
	answers, err := b.RunAll(t.Context(), count.Call([]string{"counter"}, 1), other.Call(nil), count.Call([]string{"counter"}, 2))
	if err != nil || !slices.Equal(slices.Concat(answers...), []int64{200, 201, 7, 201, 203}) {
		t.Errorf("%v, %v", answers, err)
	}
	if b.largest < 2 || b.failures() > 0 {
		t.Errorf("at most %d calls went together; errors: %v", b.largest, b.errors)
	}
}

// TestRun_Timeout: a Redis that hangs costs one time-out, and a cooldown. When it goes on, so do the calls.
func TestRun_Timeout(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: 500 * time.Millisecond})
	goesOn := func() {
		testenv.Until(t, 10*time.Millisecond, "Redis answers", func() bool { // which a busy machine may let take too long
			b.pass(b.Left())
			_, err := b.add(t, 1)
			return err == nil
		})
	}
	goesOn()
	b.must(t, b.redis.Pause())
	if _, err := b.add(t, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Redis that hangs: %v", err)
	}
	if _, err := b.add(t, 1); !errors.Is(err, redisscript.ErrDown) {
		t.Errorf("the next call: %v", err)
	}
	b.must(t, b.redis.Resume())
	goesOn()
}

// TestCooldown: during a cooldown the server is not asked, whichever way. The first cooldown of several is its own.
func TestCooldown(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: 5 * time.Second, FirstCooldown: 300 * time.Millisecond})
	b.must(t, b.redis.Kill())
	for failures, cooldown := range []time.Duration{300 * time.Millisecond, time.Second, time.Second} {
		if _, err := b.add(t, 1); err == nil || errors.Is(err, redisscript.ErrDown) {
			t.Fatalf("exchange %d: %v", failures, err)
		}
		if left := b.Left(); left != cooldown {
			t.Errorf("after %d failures: %s", failures+1, left)
		}
		b.pass(cooldown - 1)
		for range 100 {
			_, one := b.add(t, 1)
			_, all := b.RunAll(t.Context(), count.Call([]string{"counter"}, 1))
			plain := b.Pipeline(t.Context(), func(ctx context.Context, p redis.Pipeliner) { t.Error("asked") })
			for _, err := range []error{one, all, plain} {
				if !errors.Is(err, redisscript.ErrDown) {
					t.Errorf("during the cooldown: %v", err)
				}
			}
		}
		if n := b.failures(); n != failures+1 {
			t.Errorf("%d errors after %d exchanges", n, failures+1)
		}
		b.pass(1)
	}
	b.must(t, b.redis.Restart(t.Context()))
	_, err := b.add(t, 1)
	b.must(t, err)
	b.must(t, b.redis.Kill())
	if _, err := b.add(t, 1); err == nil || b.Left() != 300*time.Millisecond {
		t.Errorf("it worked and failed again: %v, cooldown %s", err, b.Left())
	}
	if text := b.errors[0].Error(); !strings.HasPrefix(text, "test: ") {
		t.Errorf("the error does not name the purpose: %s", text)
	}
}

// TestPurposes_Apart: the failure of one purpose begins no cooldown of another.
func TestPurposes_Apart(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: time.Minute})
	other := redisscript.New(client(t, b.redis.URL), "other", redisscript.Config{Timeout: time.Minute, OnError: func(err error) { t.Error(err) }})
	b.must(t, b.rdb.Close())
	if _, err := b.add(t, 1); err == nil || b.Left() == 0 {
		t.Errorf("without a connection: %v", err)
	}
	if answer, err := other.Run(t.Context(), count.Call([]string{"counter"}, 1)); err != nil || other.Left() > 0 {
		t.Errorf("the other purpose: %v, %v", answer, err)
	}
}

// TestRun_BrokenKey: a call that fails over its key is reported, and the calls beside it go on.
func TestRun_BrokenKey(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: time.Minute})
	b.must(t, b.rdb.LPush(t.Context(), "broken", "not a number").Err())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := b.Run(t.Context(), count.Call([]string{"broken"}, 1)); !redis.HasErrorPrefix(err, "WRONGTYPE") {
				t.Errorf("broken key: %v", err)
			}
		})
		all.Go(func() {
			if _, err := b.add(t, 1); err != nil {
				t.Errorf("another key: %v", err)
			}
		})
	}
	all.Wait()
	if b.failures() != 20 || b.Left() > 0 {
		t.Errorf("%d errors, cooldown %s", b.failures(), b.Left())
	}
	answers, err := b.RunAll(t.Context(), count.Call([]string{"counter"}, 1), count.Call([]string{"broken"}, 1))
	if answers != nil || !redis.HasErrorPrefix(err, "WRONGTYPE") || b.Left() > 0 {
		t.Errorf("%v, %v", answers, err)
	}
}

// TestRun_Weight: light calls that wait go together, of heavy ones each goes alone.
func TestRun_Weight(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: time.Minute})
	together := func(weight int) int {
		b.must(t, b.redis.Pause())
		b.largest = 0
		var begun, all sync.WaitGroup
		for range 50 {
			begun.Add(1)
			all.Go(func() {
				begun.Done()
				c := count.Call([]string{"counter"}, 1)
				c.Weight = weight
				if _, err := b.Run(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		begun.Wait()
		time.Sleep(100 * time.Millisecond) // those that have begun gather
		b.must(t, b.redis.Resume())
		all.Wait()
		return b.largest
	}
	if light, heavy := together(10), together(redisscript.MaxWeight/2+1); light < 2 || heavy != 1 {
		t.Errorf("%d light calls went together, and %d heavy ones", light, heavy)
	}
}

// TestRunAll_CallerGivesUp: that says nothing of Redis.
func TestRunAll_CallerGivesUp(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: time.Minute})
	b.must(t, b.redis.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.RunAll(ctx, count.Call([]string{"counter"}, 1))
	plain := b.Pipeline(ctx, func(ctx context.Context, p redis.Pipeliner) { p.Del(ctx, "counter") })
	if err == nil || plain == nil || b.failures() > 0 || b.Left() > 0 {
		t.Errorf("%v, %v; %d errors, cooldown %s", err, plain, b.failures(), b.Left())
	}
	b.must(t, b.redis.Resume())
}

// TestRunAll_WrongPassword covers a pipeline without a connection, because Redis refused it: its commands have no error
// of their own.
func TestRunAll_WrongPassword(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	testenv.Check(t, testenv.RedisClient(t, server.URL).ConfigSet(t.Context(), "requirepass", "right").Err())
	r := redisscript.New(client(t, strings.Replace(server.URL, "redis://", "redis://:wrong@", 1)), "test", redisscript.Config{Timeout: time.Minute})
	if answers, err := r.RunAll(t.Context(), count.Call([]string{"a"}, 1), count.Call([]string{"b"}, 1)); err == nil {
		t.Errorf("it answers %v", answers)
	}
	if r.Left() == 0 {
		t.Error("no cooldown begins")
	}
}

// TestPipeline sends plain commands, and notices that they fail.
func TestPipeline(t *testing.T) {
	t.Parallel()
	b := setup(t, redisscript.Config{Timeout: time.Minute})
	_, err := b.add(t, 5)
	b.must(t, err)
	b.must(t, b.Pipeline(t.Context(), func(ctx context.Context, p redis.Pipeliner) { p.Del(ctx, "counter"); p.Set(ctx, "a", 1, 0) }))
	if keys := b.rdb.Keys(t.Context(), "*").Val(); !slices.Equal(keys, []string{"a"}) {
		t.Errorf("keys %v", keys)
	}
	b.must(t, b.redis.Kill())
	if err := b.Pipeline(t.Context(), func(ctx context.Context, p redis.Pipeliner) { p.Del(ctx, "a") }); err == nil || b.Left() != time.Second {
		t.Errorf("%v, cooldown %s", err, b.Left())
	}
}

// TestInstallation_Names: they belong to one database, and are unknown until it has answered.
func TestInstallation_Names(t *testing.T) {
	t.Parallel()
	var known atomic.Bool
	var own redisscript.Installation = func() (string, bool) { return "abc", known.Load() }
	r := redisscript.New(nil, "test", redisscript.Config{Installation: own})
	if _, err := r.Prefix(); !errors.Is(err, redisscript.ErrUnnamed) {
		t.Errorf("without a name: %v", err)
	}
	if _, err := own.Queue(); !errors.Is(err, redisscript.ErrUnnamed) {
		t.Errorf("without a name: %v", err)
	}
	known.Store(true)
	prefix, _ := r.Prefix()
	queue, _ := own.Queue()
	onlyPrefix, _ := redisscript.Installation(nil).Prefix()
	onlyQueue, _ := redisscript.Installation(nil).Queue()
	if got := []string{prefix, queue, onlyPrefix, onlyQueue}; !slices.Equal(got, []string{"sq:abc:", "push-abc-", "sq:", "push-"}) {
		t.Errorf("%q", got)
	}
}

package pace_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.DialTimeout, o.MaxRetries, o.ContextTimeoutEnabled = 200*time.Millisecond, -1, true
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// worker is one that must not meet an error.
func worker(t *testing.T, rdb *redis.Client, name string) *pace.Pacer {
	return pace.New(rdb, name, func(err error) { t.Error(err) })
}

// send takes slots, as often as it is told to, and notes when they were.
func send(t *testing.T, p *pace.Pacer, s pace.Speed, times int) (at []time.Time) {
	for len(at) < times {
		slots, wait := p.Take(t.Context(), "sms", s, times-len(at))
		time.Sleep(wait)
		for range slots {
			at = append(at, time.Now())
		}
	}
	return at
}

// TestThreeWorkersShareTheSlots evenly, at exactly the speed of the channel.
func TestThreeWorkersShareTheSlots(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	speed := pace.PerSpan(20, time.Second, 1)
	var (
		mu   sync.Mutex
		all  []time.Time
		each sync.WaitGroup
	)
	for _, name := range []string{"a", "b", "c"} {
		each.Go(func() {
			at := send(t, worker(t, rdb, name), speed, 10)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, at...)
		})
	}
	each.Wait()
	slices.SortFunc(all, time.Time.Compare)
	if took, want := all[len(all)-1].Sub(all[0]), 29*speed.Every; took < want-10*time.Millisecond || took > want+400*time.Millisecond {
		t.Errorf("30 slots took %s, want %s", took, want)
	}
	tight := 0
	for i := 1; i < len(all); i++ {
		if all[i].Sub(all[i-1]) < speed.Every/2 {
			tight++
		}
	}
	if tight > 3 { // a machine that is busy wakes us late, but not so often
		t.Errorf("%d of 29 gaps are much shorter than %s", tight, speed.Every)
	}
}

// TestBurst: after a rest so many may go at once, and never more within the time
// that they take.
func TestBurst(t *testing.T) {
	t.Parallel()
	p := worker(t, client(t, testenv.Redis(t)), "a")
	speed := pace.PerSpan(10, time.Second, 4)
	began := time.Now()
	at := send(t, p, speed, 8)
	for i, want := range []time.Duration{0, 0, 0, 0, 100, 200, 300, 400} {
		if got := at[i].Sub(began); got < want*time.Millisecond-20*time.Millisecond || got > want*time.Millisecond+90*time.Millisecond {
			t.Errorf("slot %d came after %s, want %dms", i, got, want)
		}
	}
}

// TestFastChannels take several slots with one question.
func TestFastChannels(t *testing.T) {
	t.Parallel()
	p := worker(t, client(t, testenv.Redis(t)), "a")
	slots, wait := p.Take(t.Context(), "push", pace.PerSpan(1000, time.Second, 1), 50)
	if slots < 4 || slots > 7 || wait > time.Millisecond {
		t.Errorf("%d slots in %s, want those of 5 ms", slots, wait)
	}
	if slots, _ := p.Take(t.Context(), "other", pace.PerSpan(1000, time.Second, 1), 2); slots != 2 {
		t.Errorf("%d slots, want the 2 that were asked for", slots)
	}
}

// TestNothingStaysBehind when a channel rests.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	p := worker(t, rdb, "a")
	send(t, p, pace.PerSpan(20, time.Second, 1), 2)
	for deadline := time.Now().Add(5 * time.Second); len(rdb.Keys(t.Context(), "*").Val()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("keys stay: %v", rdb.Keys(t.Context(), "*").Val())
		}
	}
}

// TestPause: all workers learn of it, and a shorter one does not shorten it.
func TestPause(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	a, b := worker(t, rdb, "a"), worker(t, rdb, "b")
	a.Pause(t.Context(), "sms", 10*time.Second)
	a.Pause(t.Context(), "sms", time.Second)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	told := errors.New("told")
	var left time.Duration
	cause, cancel := context.WithCancelCause(ctx)
	err := b.Run(cause, []string{"push", "sms"}, func(channel string, d time.Duration) {
		if channel != "sms" {
			t.Errorf("channel %s is paused", channel)
		}
		left = d
		cancel(told)
	})
	if err != nil || context.Cause(cause) != told || left < 8*time.Second || left > 10*time.Second {
		t.Errorf("%v, %v: paused for %s more", err, context.Cause(cause), left)
	}
}

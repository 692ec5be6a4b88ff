package pace_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Overlap(4)
	testenv.Main(m)
}

// acme and other are tenants.
var acme, other = uuid.New(), uuid.UUID{0xff, 15: 0xfe} // whose numbers are negative

func client(t *testing.T, url string) redisclient.Client {
	t.Helper()
	return testenv.RedisClient(t, url, func(o *redisclient.Options) {
		o.DialTimeout, o.MaxRetries, o.ContextTimeoutEnabled = 200*time.Millisecond, -1, true
	})
}

// worker is one that must not meet an error, but that a busy machine is slow.
func worker(t *testing.T, rdb redisclient.Client, name string) *pace.Pacer {
	return pace.New(rdb, nil, name, func(err error) {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}

// watch runs a worker until the test ends.
func watch(t *testing.T, p *pace.Pacer) {
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(t.Context(), nil, nil) })
	t.Cleanup(running.Wait)
}

// take takes slots without levels.
func take(ctx context.Context, p *pace.Pacer, channel string, s pace.Speed, wanted int) (slots int, wait time.Duration) {
	of := p.Take(ctx, pace.Order{Channel: channel, Speed: s, Wanted: wanted})
	return of.Taken, of.Wait
}

// ready waits until a Redis that was started a moment ago gives slots of such a channel.
func ready(t *testing.T, rdb redisclient.Client, s pace.Speed) {
	t.Helper()
	p := worker(t, rdb, "ready")
	for slots := 0; slots == 0; {
		var wait time.Duration
		if slots, wait = take(t.Context(), p, "ready", s, 1); slots == 0 {
			time.Sleep(wait)
		}
	}
}

// send takes slots the given number of times, and returns their times.
func send(t *testing.T, p *pace.Pacer, s pace.Speed, times int) (at []time.Time) {
	for len(at) < times {
		slots, wait := take(t.Context(), p, "sms", s, times-len(at))
		time.Sleep(wait)
		for range slots {
			at = append(at, time.Now())
		}
	}
	return at
}

// notBefore wants no slot to be used before it is its turn. A busy machine uses them late, and then closer to each
// other.
func notBefore(t *testing.T, began time.Time, at []time.Time, turn func(i int) time.Duration) {
	t.Helper()
	for i := range at {
		if after := at[i].Sub(began); after < turn(i)-20*time.Millisecond {
			t.Errorf("slot %d was used after %s, want %s", i, after, turn(i))
		}
	}
}

// TestTake_ThreeWorkers: together they are no faster than the channel.
func TestTake_ThreeWorkers(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	speed := pace.PerSpan(20, time.Second, 1)
	var (
		mu   sync.Mutex
		all  []time.Time
		each sync.WaitGroup
	)
	began := time.Now()
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
	notBefore(t, began, all, func(i int) time.Duration { return time.Duration(i) * speed.Every })
}

// TestTake_Burst: after a rest a burst may go at once, and never more within the time that it takes.
func TestTake_Burst(t *testing.T) {
	t.Parallel()
	rdb, speed := client(t, testenv.Redis(t)), pace.PerSpan(10, time.Second, 4)
	ready(t, rdb, speed)
	p := worker(t, rdb, "a")
	began := time.Now()
	if slots, wait := take(t.Context(), p, "sms", speed, 8); slots != 4 || wait > 0 {
		t.Errorf("%d slots after %s, want 4 at once", slots, wait)
	}
	notBefore(t, began, send(t, p, speed, 4), func(i int) time.Duration { return time.Duration(i+1) * speed.Every })
}

// TestTake_FastChannels: they take several slots with one question.
func TestTake_FastChannels(t *testing.T) {
	t.Parallel()
	rdb, speed := client(t, testenv.Redis(t)), pace.PerSpan(1000, time.Second, 1)
	ready(t, rdb, speed)
	p := worker(t, rdb, "a")
	slots, wait := take(t.Context(), p, "push", speed, 50)
	if slots < 4 || slots > 7 || wait > time.Millisecond {
		t.Errorf("%d slots in %s, want the slots of 5 ms", slots, wait)
	}
	if slots, _ := take(t.Context(), p, "other", speed, 2); slots != 2 {
		t.Errorf("%d slots, want the 2 that were asked for", slots)
	}
}

// TestKeys_Expire: none is left when a channel rests.
func TestKeys_Expire(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	p := worker(t, rdb, "a")
	send(t, p, pace.PerSpan(20, time.Second, 1), 2)
	testenv.UntilWhole(t, time.Millisecond, func() string { return strings.Join(rdb.Keys(t.Context(), "*").Val(), " ") })
}

// TestPause_RedisIsLost: a pause that begins while Redis does not answer is published afterwards, for its remaining
// time.
func TestPause_RedisIsLost(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	rdb := client(t, server.URL)
	a := pace.New(rdb, nil, "a", func(error) {})
	watch(t, a)
	testenv.Until(t, 10*time.Millisecond, "it watches", func() bool { return len(rdb.Keys(t.Context(), "*").Val()) > 0 })
	testenv.Check(t, server.Pause())
	began := time.Now()
	a.Pause(t.Context(), "sms", acme, 10*time.Minute)
	a.Pause(t.Context(), "sms", acme, time.Minute)
	a.Pause(t.Context(), "push", acme, time.Nanosecond)
	testenv.Check(t, server.Resume())
	testenv.Until(t, 10*time.Millisecond, "it is published", func() bool { return len(rdb.Keys(t.Context(), "*:pause").Val()) > 0 })
	if left := rdb.PTTL(t.Context(), "sq:pace:{sms}:pause").Val(); left > 10*time.Minute || left < 10*time.Minute-time.Since(began)-time.Second {
		t.Errorf("it lasts %s more, %s after it began", left, time.Since(began))
	}
	if keys := rdb.Keys(t.Context(), "*:pause").Val(); len(keys) != 1 {
		t.Errorf("%v", keys)
	}
}

// TestPause: all workers learn which tenants pause, and a shorter pause does not shorten a longer one of the same tenant.
func TestPause(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	a, b := worker(t, rdb, "a"), worker(t, rdb, "b")
	a.Pause(t.Context(), "sms", acme, 10*time.Minute)
	watch(t, a) // and tell it again if Redis was slow
	testenv.Until(t, 10*time.Millisecond, "it is paused", func() bool { return len(rdb.Keys(t.Context(), "*:pause").Val()) > 0 })
	for range 3 { // one comes through
		a.Pause(t.Context(), "sms", acme, time.Second)
	}
	a.Pause(t.Context(), "sms", other, time.Minute)
	testenv.Until(t, 10*time.Millisecond, "both are paused", func() bool { return rdb.HLen(t.Context(), "sq:pace:{sms}:pause").Val() == 2 })
	told := errors.New("told")
	left := map[uuid.UUID]time.Duration{}
	cause, cancel := context.WithCancelCause(t.Context())
	err := b.Run(cause, []string{"push", "sms"}, func(channel string, tenant uuid.UUID, d time.Duration) {
		if channel != "sms" {
			t.Errorf("channel %s is paused", channel)
		}
		if left[tenant] = d; len(left) == 2 {
			cancel(told)
		}
	})
	if err != nil || context.Cause(cause) != told || left[acme] < 2*time.Minute || left[acme] > 10*time.Minute || left[other] <= 0 || left[other] > time.Minute {
		t.Errorf("%v, %v: paused for %v more", err, context.Cause(cause), left)
	}
}

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

// worker is one that must not meet an error, but that a busy machine is slow.
func worker(t *testing.T, rdb *redis.Client, name string) *pace.Pacer {
	return pace.New(rdb, name, func(err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
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

// notBefore wants no slot to be used before it is its turn. A busy machine uses
// them late, and then closer to each other.
func notBefore(t *testing.T, began time.Time, at []time.Time, turn func(i int) time.Duration) {
	t.Helper()
	for i := range at {
		if after := at[i].Sub(began); after < turn(i)-20*time.Millisecond {
			t.Errorf("slot %d was used after %s, want %s", i, after, turn(i))
		}
	}
}

// TestThreeWorkersShareTheSlots: together they are no faster than the channel.
func TestThreeWorkersShareTheSlots(t *testing.T) {
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

// TestBurst: after a rest so many may go at once, and never more within the time
// that they take.
func TestBurst(t *testing.T) {
	t.Parallel()
	p := worker(t, client(t, testenv.Redis(t)), "a")
	speed := pace.PerSpan(10, time.Second, 4)
	began := time.Now()
	if slots, wait := p.Take(t.Context(), "sms", speed, 8); slots != 4 || wait > 0 {
		t.Errorf("%d slots after %s, want 4 at once", slots, wait)
	}
	notBefore(t, began, send(t, p, speed, 4), func(i int) time.Duration { return time.Duration(i+1) * speed.Every })
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
	for deadline := time.Now().Add(2 * time.Minute); len(rdb.Keys(t.Context(), "*").Val()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("keys stay: %v", rdb.Keys(t.Context(), "*").Val())
		}
	}
}

// slot is what is known of when a slot is: it lies between what it would be if
// the answer had come when it was asked for, and if it had come when we had it.
type slot struct{ earliest, latest time.Time }

func take(t *testing.T, p *pace.Pacer, s pace.Speed) (slots int, at slot) {
	asked := time.Now()
	slots, wait := p.Take(t.Context(), "sms", s, 5)
	return slots, slot{asked.Add(wait), time.Now().Add(wait)}
}

// after is by how much it is later than another one, at least and at most.
func (s slot) after(other slot) (least, most time.Duration) {
	return s.earliest.Sub(other.latest), s.latest.Sub(other.earliest)
}

// TestWithoutRedis each worker keeps to half of its part; one that never knew of
// others to very little.
func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	own := testenv.OwnRedis(t)
	rdb := client(t, own.URL)
	var failures int
	speed := pace.PerSpan(10, time.Second, 1)
	known := pace.New(rdb, "a", func(error) { failures++ })
	heard := func() float64 { return rdb.ZScore(t.Context(), "sq:pace:workers", "a").Val() }
	run := func(p *pace.Pacer) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, nil, nil) }()
		for range 2 { // who is heard of for the second time has the answer of the first
			for last := heard(); heard() == last; {
				time.Sleep(time.Millisecond)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// Two workers are there.
	if err := rdb.ZAdd(t.Context(), "sq:pace:workers", redis.Z{Score: float64(time.Now().UnixMilli()), Member: "b"}).Err(); err != nil {
		t.Fatal(err)
	}
	run(known)
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	var at []slot
	for i := range 3 {
		slots, one := take(t, known, speed)
		if at = append(at, one); slots != 1 {
			t.Errorf("slot %d: %d at once", i, slots)
		}
	}
	if at[0].latest.Sub(began) < speed.Every {
		t.Errorf("the first slot comes after %s at the latest", at[0].latest.Sub(began))
	}
	for i := 1; i < len(at); i++ {
		want := 4 * speed.Every // a half of a half
		if least, most := at[i].after(at[i-1]); most < want || least > want {
			t.Errorf("slot %d comes %s to %s after the one before, want %s", i, least, most, want)
		}
	}
	if most := 1 + int(time.Since(began)/time.Second); failures > most {
		t.Errorf("Redis was asked %d times, and once a second would be %d", failures, most)
	}
	unknowing := pace.New(rdb, "c", func(error) {})
	_, _ = unknowing.Take(t.Context(), "sms", speed, 1)
	if slots, wait := unknowing.Take(t.Context(), "sms", speed, 1); slots != 0 || wait != time.Second {
		t.Errorf("a worker that knows of nobody gets %d slots in %s, and its next is 2 s away", slots, wait)
	}
}

// TestRedisComesBack: a slow channel does not wait for a slot of the share that
// is far away, and the first slot keeps its distance from what was sent before.
func TestRedisComesBack(t *testing.T) {
	t.Parallel()
	own := testenv.OwnRedis(t)
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	p := pace.New(client(t, own.URL), "a", func(error) {})
	speed := pace.PerSpan(2, time.Second, 1)
	var sent []slot
	next := func() {
		var at slot
		for slots := 0; slots == 0; {
			slots, at = take(t, p, speed)
			time.Sleep(time.Until(at.latest))
		}
		sent = append(sent, at)
	}
	next()
	if err := own.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		next()
	}
	for i, at := range sent[1:] {
		if _, gap := at.after(sent[i]); gap < speed.Every {
			t.Errorf("slot %d comes %s after the one before at most", i+1, gap)
		}
	}
}

// TestPause: all workers learn of it, and a shorter one does not shorten it.
func TestPause(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	a, b := worker(t, rdb, "a"), worker(t, rdb, "b")
	a.Pause(t.Context(), "sms", 10*time.Minute)
	a.Pause(t.Context(), "sms", time.Second)
	told := errors.New("told")
	var left time.Duration
	cause, cancel := context.WithCancelCause(t.Context())
	err := b.Run(cause, []string{"push", "sms"}, func(channel string, d time.Duration) {
		if channel != "sms" {
			t.Errorf("channel %s is paused", channel)
		}
		left = d
		cancel(told)
	})
	if err != nil || context.Cause(cause) != told || left < 2*time.Minute || left > 10*time.Minute {
		t.Errorf("%v, %v: paused for %s more", err, context.Cause(cause), left)
	}
}

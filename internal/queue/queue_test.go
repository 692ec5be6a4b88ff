package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestServe_Arrivals: wake-ups due now arrive at once. One for later arrives at most two seconds before its time, and
// not after it.
func TestServe_Arrivals(t *testing.T) {
	t.Parallel()
	q := setup(t)
	arrived := make(chan push.WakeUp, 10)
	serve(t, q, func(_ context.Context, w push.WakeUp) error { arrived <- w; return nil })
	due, later := wakeUp(-time.Minute), wakeUp(4*time.Second)
	arm(t, q, later, due)
	for _, want := range []push.WakeUp{due, later} {
		if diff := cmp.Diff(want, <-arrived, cmpopts.EquateApproxTime(0), cmpopts.IgnoreFields(push.WakeUp{}, "In")); diff != "" {
			t.Error(diff)
		}
	}
	if now := time.Now(); now.Before(later.At.Add(-2 * time.Second)) {
		t.Errorf("it arrived at %s, for %s", now, later.At)
	}
	empty(t, q)
}

// TestArm_NoDuplicates: another lane, moment or part is another wake-up.
func TestArm_NoDuplicates(t *testing.T) {
	t.Parallel()
	q := setup(t)
	w := wakeUp(time.Hour)
	arm(t, q, w)
	arm(t, q, w)
	arm(t, q, w, w, w)
	if got := sizes(t, q)["scheduled"]; got != 1 {
		t.Errorf("%d are scheduled", got)
	}
	lane, moment, part := w, w, w
	lane.Lane = push.Lane{First: w.Lane.First, Last: w.Lane.Last - 1} // of a program with other lanes
	moment.At = w.At.Add(tenth)
	part.Part++
	arm(t, q, lane, moment, part)
	if got := sizes(t, q)["scheduled"]; got != 4 {
		t.Errorf("%d are scheduled", got)
	}
}

// TestArm_AgainWhenDone: a handled wake-up does not prevent arming the same one again.
func TestArm_AgainWhenDone(t *testing.T) {
	t.Parallel()
	q := setup(t)
	var arrived atomic.Int64
	serve(t, q, func(context.Context, push.WakeUp) error { arrived.Add(1); return nil })
	w := wakeUp(0)
	for n := int64(1); n <= 3; n++ {
		eventually(t, "it is armed and arrives", func() bool { arm(t, q, w); return arrived.Load() >= n })
	}
}

// TestArm_Spread: lanes are spread over asynq's queues, each in one.
func TestArm_Spread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ queues, lanes, least, most int }{
		{1, 4, 4, 4}, {2, 4, 2, 2}, {4, 4, 1, 1}, {3, 8, 2, 3}, {64, 256, 4, 4}, {64, 1, 0, 1}, {3, 1, 0, 1},
	} {
		rdb := client(t, testenv.Redis(t))
		q := queue.New(rdb, c.queues, nil)
		for range 2 { // each twice
			for _, lane := range push.Lanes(c.lanes) {
				w := wakeUp(time.Hour)
				w.Lane = lane
				arm(t, q, w)
			}
		}
		all := int64(0)
		for i := range c.queues {
			n := rdb.ZCard(t.Context(), fmt.Sprintf("asynq:{push-lane%d}:scheduled", i)).Val()
			if n < int64(2*c.least) || n > int64(2*c.most) {
				t.Errorf("%d lanes over %d queues: queue %d has %d of their %d wake-ups", c.lanes, c.queues, i, n, 2*c.lanes)
			}
			all += n
		}
		if all != int64(2*c.lanes) {
			t.Errorf("%d lanes over %d queues: %d wake-ups instead of %d", c.lanes, c.queues, all, 2*c.lanes)
		}
	}
}

// TestServe_PreviousRelease: wake-ups of the previous release, which name a push, are left to it.
func TestServe_PreviousRelease(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 1, nil)
	old := asynq.NewClientFromRedisClient(rdb.(redis.UniversalClient))
	for _, name := range []string{"push-0", "push-0-bulk"} {
		if _, err := old.Enqueue(asynq.NewTask("push:wake", []byte(`{"Push":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01","Gen":1}`)), asynq.Queue(name)); err != nil {
			t.Fatal(err)
		}
	}
	arrived := make(chan push.WakeUp, 10)
	serve(t, q, func(_ context.Context, w push.WakeUp) error { arrived <- w; return nil })
	w := wakeUp(0)
	arm(t, q, w)
	if got := <-arrived; !same(got, w) {
		t.Errorf("%+v", got)
	}
	empty(t, q)
	for _, name := range []string{"push-0", "push-0-bulk"} {
		if n := rdb.LLen(t.Context(), "asynq:{"+name+"}:pending").Val(); n != 1 {
			t.Errorf("%s has %d wake-ups", name, n)
		}
	}
}

// TestServe_Concurrency: no more handlers run than the caller wants.
func TestServe_Concurrency(t *testing.T) {
	t.Parallel()
	q := setup(t)
	var running, most, handled atomic.Int64
	serve(t, q, func(context.Context, push.WakeUp) error {
		now := running.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		time.Sleep(5 * time.Millisecond) // as one that sends
		running.Add(-1)
		handled.Add(1)
		return nil
	})
	for range 60 {
		arm(t, q, wakeUp(0))
	}
	eventually(t, "all are handled", func() bool { return handled.Load() == 60 })
	if most.Load() > concurrency {
		t.Errorf("%d handlers ran at the same time", most.Load())
	}
}

// TestSizes_NeverUsed: sizes are zero, not an error, before the first wake-up.
func TestSizes_NeverUsed(t *testing.T) {
	t.Parallel()
	if s, err := setup(t).Sizes(); err != nil || s["pending"]+s["active"]+s["scheduled"]+s["retry"] != 0 {
		t.Errorf("%v, %v", s, err)
	}
}

// TestServe_FailedHandler: a failed handler is called again as often as needed.
func TestServe_FailedHandler(t *testing.T) {
	t.Parallel()
	q := setup(t)
	calls := make(chan push.WakeUp, 10)
	var n atomic.Int64
	serve(t, q, func(_ context.Context, w push.WakeUp) error {
		calls <- w
		if n.Add(1) <= 2 {
			return push.ErrUnavailable
		}
		return nil
	})
	w := wakeUp(0)
	arm(t, q, w)
	for range 3 {
		if got := <-calls; !same(got, w) {
			t.Errorf("called for %+v", got)
		}
	}
	empty(t, q)
}

// TestServe_MalformedWakeUp: a malformed wake-up is archived, and the next one is handled.
func TestServe_MalformedWakeUp(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 1, nil)
	if _, err := asynq.NewClientFromRedisClient(rdb.(redis.UniversalClient)).Enqueue(asynq.NewTask("push:wake", []byte("?")), asynq.Queue("push-lane0")); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan push.WakeUp, 10)
	serve(t, q, func(_ context.Context, w push.WakeUp) error { arrived <- w; return nil })
	w := wakeUp(0)
	arm(t, q, w)
	if got := <-arrived; !same(got, w) {
		t.Errorf("%+v", got)
	}
	eventually(t, "the other is archived", func() bool { return rdb.ZCard(t.Context(), "asynq:{push-lane0}:archived").Val() == 1 })
}

// TestServe_Drains: Serve returns when running handlers have, and does not cancel them.
func TestServe_Drains(t *testing.T) {
	t.Parallel()
	q := setup(t)
	begun, proceed := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	stop := serve(t, q, func(ctx context.Context, _ push.WakeUp) error {
		close(begun)
		<-proceed
		finished.Store(ctx.Err() == nil)
		return nil
	})
	arm(t, q, wakeUp(0))
	<-begun
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("Serve returned while a handler ran")
	case <-time.After(50 * time.Millisecond): // Serve must not return, so a fixed time has to do
	}
	close(proceed)
	<-stopped
	if !finished.Load() {
		t.Error("the handler was cut off")
	}
}

// silentConn is a connection whose server does not answer a SUBSCRIBE.
type silentConn struct{ net.Conn }

func (c silentConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("subscribe")) {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestServe_EndsDespiteSilence: a connection to Redis that falls silent while asynq subscribes does not keep a worker from ending.
func TestServe_EndsDespiteSilence(t *testing.T) {
	t.Parallel()
	url := testenv.Redis(t)
	q := queue.New(testenv.RedisClient(t, url, func(o *redisclient.Options) {
		o.DialTimeout, o.ReadTimeout, o.MaxRetries = time.Second, time.Second, -1
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return silentConn{conn}, err
		}
	}), 3, nil)
	handled := make(chan struct{}, 10)
	stop := serve(t, q, func(context.Context, push.WakeUp) error {
		handled <- struct{}{}
		return nil
	})
	arm(t, q, wakeUp(0))
	<-handled
	stop() // it ends at all
}

// TestArm_WithoutRedis: arming fails, then fails without asking Redis, and recovers by itself.
func TestArm_WithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	q := queue.New(patient(t, server.URL, time.Second), 2, nil)
	eventually(t, "arming works", func() bool { return q.Arm(t.Context(), []push.WakeUp{wakeUp(time.Hour)}) == nil })
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	try := func() error { return q.Arm(t.Context(), []push.WakeUp{wakeUp(time.Hour), wakeUp(time.Hour)}) }
	if err := try(); err == nil || errors.Is(err, redisscript.ErrDown) {
		t.Errorf("first: %v", err)
	}
	if err := try(); !errors.Is(err, redisscript.ErrDown) {
		t.Errorf("then: %v", err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "arming works again", func() bool { return try() == nil })
}

// TestSizes_AfterFlush: asynq registers a queue for its Inspector once per process. The next arming does so again, or
// the worker's gauges would be lost until it restarts.
func TestSizes_AfterFlush(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	rdb := client(t, server.URL)
	q := queue.New(rdb, 2, nil)
	arm(t, q, wakeUp(time.Hour))
	if got := sizes(t, q)["scheduled"]; got != 1 {
		t.Fatalf("%d are scheduled", got)
	}
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	armed := 0
	eventually(t, "the sizes are known again", func() bool {
		arm(t, q, wakeUp(time.Hour))
		armed++
		listed := strings.Join(rdb.SMembers(t.Context(), "asynq:queues").Val(), " ")
		return sizes(t, q)["scheduled"] == armed && strings.Contains(listed, "push-lane0") && strings.Contains(listed, "push-lane1")
	})
}

// TestArm_BesideActive: an active wake-up may have asked Postgres before the push was there, or belong to a killed
// worker, and come back only after a minute or two. Arming it again always runs another one.
func TestArm_BesideActive(t *testing.T) {
	t.Parallel()
	q := setup(t)
	begun, proceed := make(chan struct{}, 10), make(chan struct{})
	serve(t, q, func(context.Context, push.WakeUp) error { begun <- struct{}{}; <-proceed; return nil })
	w := wakeUp(0)
	for range concurrency { // most likely within a second
		arm(t, q, w)
		<-begun
	}
	if s := sizes(t, q); s["active"] != concurrency {
		t.Errorf("%v", s)
	}
	close(proceed)
	empty(t, q)
}

// TestWorks_BrokenQueue: Redis answers, but no worker is woken.
func TestWorks_BrokenQueue(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 2, nil)
	if err := q.Works(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]func(key string) error{
		"asynq:{push-lane1}:paused":    func(key string) error { return rdb.Set(t.Context(), key, 1, 0).Err() },
		"asynq:{push-lane0}:pending":   func(key string) error { return rdb.Set(t.Context(), key, 1, 0).Err() },
		"asynq:{push-lane1}:scheduled": func(key string) error { return rdb.LPush(t.Context(), key, 1).Err() },
	} {
		if err := value(key); err != nil {
			t.Fatal(err)
		}
		var broken *queue.BrokenError
		if err := q.Works(t.Context()); !errors.As(err, &broken) || !strings.Contains(err.Error(), key) || broken.State() != "queue_broken" {
			t.Errorf("%s: %v", key, err)
		}
		rdb.Del(t.Context(), key)
	}
	if err := q.Works(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestArm_CallerGivesUp: a caller whose context is too short for its wake-ups does not start the cooldown for others.
func TestArm_CallerGivesUp(t *testing.T) {
	t.Parallel()
	q := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Arm(ctx, []push.WakeUp{wakeUp(time.Hour), wakeUp(time.Hour)}); err == nil || errors.Is(err, redisscript.ErrDown) {
		t.Errorf("without any patience: %v", err)
	}
	arm(t, q, wakeUp(time.Hour))
}

// TestQueue_Installations: installations that share a Redis have their own wake-ups, and none while their database has
// no name yet.
func TestQueue_Installations(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	named := func(name string) redisscript.Installation { return func() (string, bool) { return name, true } }
	var known atomic.Bool
	one, two := queue.New(rdb, 2, named("one")), queue.New(rdb, 2, func() (string, bool) { return "two", known.Load() })
	if err := two.Arm(t.Context(), []push.WakeUp{wakeUp(0)}); !errors.Is(err, redisscript.ErrUnnamed) {
		t.Errorf("without a name: %v", err)
	}
	if err := two.Works(t.Context()); err != nil {
		t.Errorf("Redis works: %v", err)
	}
	var byOne, byTwo atomic.Int64
	serve(t, one, func(context.Context, push.WakeUp) error { byOne.Add(1); return nil })
	serve(t, two, func(context.Context, push.WakeUp) error { byTwo.Add(1); return nil })
	known.Store(true)
	for range 20 {
		arm(t, one, wakeUp(0))
		arm(t, two, wakeUp(0), wakeUp(0))
	}
	eventually(t, "all are handled", func() bool { return byOne.Load()+byTwo.Load() == 60 })
	if byOne.Load() != 20 {
		t.Errorf("the first handled %d of its 20 wake-ups, the second %d of its 40", byOne.Load(), byTwo.Load())
	}
}

// BenchmarkArm arms the lanes of a worker alone, 1000 wake-ups at a time. Each is for up to 256 pushes.
func BenchmarkArm(b *testing.B) {
	rdb := client(b, testenv.OwnRedis(b).URL)
	q := queue.New(rdb, 1, nil)
	used := func() int {
		n, err := strconv.Atoi(rdb.InfoMap(b.Context(), "memory").Item("Memory", "used_memory"))
		testenv.Check(b, err)
		return n
	}
	some := func() {
		var wakeUps []push.WakeUp
		for range 1000 {
			wakeUps = append(wakeUps, wakeUp(time.Hour))
		}
		arm(b, q, wakeUps...)
	}
	some() // opens connections
	before, armed := used(), 0
	for b.Loop() {
		some()
		armed += 1000
	}
	b.ReportMetric(float64(armed)/b.Elapsed().Seconds(), "wake-ups/s")
	b.ReportMetric(float64(used()-before)/float64(armed), "B/wake-up")
}

package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestWakeUpsArriveAsTheyWereArmed: those due now at once, one for later not
// before its second.
func TestWakeUpsArriveAsTheyWereArmed(t *testing.T) {
	t.Parallel()
	q := open(t)
	arrived := make(chan push.WakeUp, 10)
	serve(t, q, func(_ context.Context, w push.WakeUp) error { arrived <- w; return nil })
	due, later := wakeUp(-time.Minute), wakeUp(1500*time.Millisecond)
	arm(t, q, later, due)
	for _, want := range []push.WakeUp{due, later} {
		if diff := cmp.Diff(want, <-arrived, cmpopts.EquateApproxTime(0), cmpopts.IgnoreFields(push.WakeUp{}, "In")); diff != "" {
			t.Error(diff)
		}
	}
	if now := time.Now(); now.Before(later.At.Truncate(time.Second)) {
		t.Errorf("it arrived at %s, for %s", now, later.At)
	}
	eventually(t, "the queue is empty", func() bool {
		s := sizes(t, q)
		return s["pending"]+s["active"]+s["scheduled"]+s["retry"] == 0
	})
}

// TestArmingTwiceIsArmingOnce; another plan of the same push is another
// wake-up.
func TestArmingTwiceIsArmingOnce(t *testing.T) {
	t.Parallel()
	q := open(t)
	w := wakeUp(time.Hour)
	arm(t, q, w)
	arm(t, q, w)
	arm(t, q, w, w, w)
	if got := sizes(t, q)["scheduled"]; got != 1 {
		t.Errorf("%d are scheduled", got)
	}
	w.Gen++
	arm(t, q, w)
	if got := sizes(t, q)["scheduled"]; got != 2 {
		t.Errorf("%d are scheduled", got)
	}
}

// TestArmedAgainWhenDone: a push that is deferred and comes back to the same
// plan, or whose lease lapsed, must not be taken for one that is there.
func TestArmedAgainWhenDone(t *testing.T) {
	t.Parallel()
	q := open(t)
	var arrived atomic.Int64
	serve(t, q, func(context.Context, push.WakeUp) error { arrived.Add(1); return nil })
	w := wakeUp(0)
	for n := int64(1); n <= 3; n++ {
		eventually(t, "it is armed and arrives", func() bool { arm(t, q, w); return arrived.Load() >= n })
	}
}

// TestRecipientsAreSpreadOverTheShards, each on one.
func TestRecipientsAreSpreadOverTheShards(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 4, nil)
	var many []push.WakeUp
	for i := range 200 {
		w := wakeUp(time.Hour)
		w.RecipientKey = int64(i) - 100
		many = append(many, w)
	}
	arm(t, q, many...)
	if got := sizes(t, q)["scheduled"]; got != 200 {
		t.Errorf("%d are scheduled", got)
	}
	shards := rdb.Keys(t.Context(), "asynq:{push-*}:scheduled").Val()
	for _, s := range shards {
		if n := rdb.ZCard(t.Context(), s).Val(); n < 20 {
			t.Errorf("%s holds %d of 200", s, n)
		}
	}
	if len(shards) != 4 {
		t.Errorf("shards %v", shards)
	}
	twins := []push.WakeUp{wakeUp(time.Hour), wakeUp(time.Hour)}
	twins[0].RecipientKey, twins[1].RecipientKey = -7, -7
	rdb.FlushDB(t.Context())
	arm(t, q, twins...)
	if shards := rdb.Keys(t.Context(), "asynq:{push-*}:scheduled").Val(); len(shards) != 1 {
		t.Errorf("one recipient's are on %v", shards)
	}
}

// TestSizesOfAQueueThatWasNeverUsed are zero, not an error.
func TestSizesOfAQueueThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	if s, err := open(t).Sizes(); err != nil || s["pending"]+s["active"]+s["scheduled"]+s["retry"] != 0 {
		t.Errorf("%v, %v", s, err)
	}
}

// TestFailedHandlersAreCalledAgain as often as it takes.
func TestFailedHandlersAreCalledAgain(t *testing.T) {
	t.Parallel()
	q := open(t)
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
		if got := <-calls; got.Push != w.Push {
			t.Errorf("called for %+v", got)
		}
	}
	eventually(t, "it is done", func() bool { s := sizes(t, q); return s["retry"]+s["active"]+s["pending"] == 0 })
}

// TestWhatIsNoWakeUpIsPutAside and holds nobody up.
func TestWhatIsNoWakeUpIsPutAside(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 1, nil)
	if _, err := asynq.NewClientFromRedisClient(rdb).Enqueue(asynq.NewTask("push:wake", []byte("?")), asynq.Queue("push-0")); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan push.WakeUp, 10)
	serve(t, q, func(_ context.Context, w push.WakeUp) error { arrived <- w; return nil })
	w := wakeUp(0)
	arm(t, q, w)
	if got := <-arrived; got.Push != w.Push {
		t.Errorf("%+v", got)
	}
	eventually(t, "the other is archived", func() bool { return rdb.ZCard(t.Context(), "asynq:{push-0}:archived").Val() == 1 })
}

// TestServeDrains: it returns when running handlers have, and they are not
// told to stop.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	q := open(t)
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
	case <-time.After(50 * time.Millisecond): // it may not return, so this is what can be waited for
	}
	close(proceed)
	<-stopped
	if !finished.Load() {
		t.Error("the handler was cut off")
	}
}

// TestArmWithoutRedis fails, then without asking, and works again by itself.
func TestArmWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	q := queue.New(client(t, server.URL), 2, nil)
	arm(t, q, wakeUp(time.Hour))
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

// TestSizesAfterAFlush: asynq tells its Inspector of a queue once per process.
// The next arming does so again, or the worker's gauges would be lost until it
// restarts.
func TestSizesAfterAFlush(t *testing.T) {
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
		return sizes(t, q)["scheduled"] == armed && strings.Contains(listed, "push-0") && strings.Contains(listed, "push-1")
	})
}

// TestArmedBesideOneThatIsBelievedToRun: asynq gives a killed worker's wake-up
// back after a minute or two. Who arms it again must not wait for that.
func TestArmedBesideOneThatIsBelievedToRun(t *testing.T) {
	t.Parallel()
	q := open(t)
	begun, dead := make(chan struct{}, 10), make(chan struct{})
	serve(t, q, func(context.Context, push.WakeUp) error { begun <- struct{}{}; <-dead; return nil })
	defer close(dead)
	w := wakeUp(0)
	arm(t, q, w)
	<-begun
	arm(t, q, w)
	<-begun
	arm(t, q, w, w) // within the second: it is the same
	if s := sizes(t, q); s["active"] > 3 {
		t.Errorf("%v", s)
	}
}

// TestWorks_BrokenQueue: Redis answers, but nobody is woken.
func TestWorks_BrokenQueue(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 2, nil)
	if err := q.Works(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]func(key string) error{
		"asynq:{push-1}:paused":    func(key string) error { return rdb.Set(t.Context(), key, 1, 0).Err() },
		"asynq:{push-0}:pending":   func(key string) error { return rdb.Set(t.Context(), key, 1, 0).Err() },
		"asynq:{push-1}:scheduled": func(key string) error { return rdb.LPush(t.Context(), key, 1).Err() },
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

// TestArm_ManyOfOneTenant wake after those of others: a thousand for one second are no
// reason for another tenant's to wait.
func TestArm_ManyOfOneTenant(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 1, nil)
	var flood []push.WakeUp
	tenant := uuid.New()
	for range 1000 {
		w := wakeUp(time.Hour)
		w.Tenant = tenant
		flood = append(flood, w)
	}
	other := wakeUp(time.Hour)
	arm(t, q, flood...)
	arm(t, q, other)
	scheduled := func(name string) int64 { return rdb.ZCard(t.Context(), "asynq:{"+name+"}:scheduled").Val() }
	if prompt, bulk := scheduled("push-0"), scheduled("push-0-bulk"); prompt != 201 || bulk != 800 {
		t.Errorf("%d are prompt, and %d are not", prompt, bulk)
	}
	if rdb.ZScore(t.Context(), "asynq:{push-0}:scheduled", "asynq:{push-0}:t:"+other.Push.String()+":1").Err() != nil && rdb.ZScore(t.Context(), "asynq:{push-0}:scheduled", other.Push.String()+":1").Err() != nil {
		t.Error("the other tenant's is not prompt")
	}
	for i := range flood {
		flood[i].Again = true // the promoter does not know whether they are still there
	}
	arm(t, q, flood...)
	if all := sizes(t, q)["scheduled"]; all != 1001 {
		t.Errorf("armed again, they are %d", all)
	}
}

// TestServe_ManyOfOneTenant: while thousands of one tenant's wake-ups wait for handlers
// that are slow, another's is handled at once.
func TestServe_ManyOfOneTenant(t *testing.T) {
	t.Parallel()
	q := open(t)
	tenant := uuid.New()
	var flood []push.WakeUp
	for range 3000 {
		w := wakeUp(-time.Second)
		w.Tenant = tenant
		flood = append(flood, w)
	}
	arm(t, q, flood...)
	var handled atomic.Int64
	before, goOn, armed := make(chan int64, 1), make(chan struct{}), make(chan struct{})
	other := wakeUp(-time.Second)
	serve(t, q, func(_ context.Context, w push.WakeUp) error {
		if w.Tenant != tenant {
			before <- handled.Load()
			return nil
		}
		n := handled.Add(1)
		if n == 500 {
			close(goOn)
		}
		if n >= 500 {
			<-armed // however long that takes
		}
		time.Sleep(5 * time.Millisecond) // as a provider that takes some time
		return nil
	})
	<-goOn
	arm(t, q, other)
	close(armed)
	if n := <-before; n > 2500 {
		t.Errorf("%d of 3000 were handled before the other tenant's", n)
	}
	eventually(t, "all are handled", func() bool { return handled.Load() == 3000 })
}

// TestImpatienceIsNoFailure: one who brings more wake-ups than he has patience
// for does not have Redis left alone by others.
func TestImpatienceIsNoFailure(t *testing.T) {
	t.Parallel()
	q := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Arm(ctx, []push.WakeUp{wakeUp(time.Hour), wakeUp(time.Hour)}); err == nil || errors.Is(err, redisscript.ErrDown) {
		t.Errorf("without any patience: %v", err)
	}
	arm(t, q, wakeUp(time.Hour))
}

// TestInstallations that share a Redis have wake-ups of their own, and none while their
// database has no name yet.
func TestInstallations(t *testing.T) {
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

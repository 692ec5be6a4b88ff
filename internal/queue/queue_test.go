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
	"github.com/hibiken/asynq"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
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

func TestDisarm(t *testing.T) {
	t.Parallel()
	q := open(t)
	stays, goes := wakeUp(time.Hour), wakeUp(time.Hour)
	arm(t, q, stays, goes)
	q.Disarm(goes)
	q.Disarm(goes)
	q.Disarm(wakeUp(time.Hour)) // was never there
	if got := sizes(t, q)["scheduled"]; got != 1 {
		t.Errorf("%d are scheduled", got)
	}
}

// TestRecipientsAreSpreadOverTheShards, each on one.
func TestRecipientsAreSpreadOverTheShards(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 4)
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
	q := queue.New(rdb, 1)
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

// TestArmWithoutRedis fails fast, then at once, and works again by itself.
func TestArmWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	q := queue.New(client(t, server.URL), 2)
	arm(t, q, wakeUp(time.Hour))
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	try := func(most time.Duration) error {
		began := time.Now()
		err := q.Arm(t.Context(), []push.WakeUp{wakeUp(time.Hour), wakeUp(time.Hour)})
		if took := time.Since(began); took > most {
			t.Errorf("it took %s", took)
		}
		return err
	}
	if err := try(5 * time.Second); err == nil || errors.Is(err, queue.ErrDown) {
		t.Errorf("first: %v", err)
	}
	if err := try(100 * time.Millisecond); !errors.Is(err, queue.ErrDown) {
		t.Errorf("then: %v", err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "arming works again", func() bool { return try(5*time.Second) == nil })
}

// TestSizesAfterAFlush: asynq tells its Inspector of a queue once per process.
// The next arming does so again, or the worker's gauges would be lost until it
// restarts.
func TestSizesAfterAFlush(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	rdb := client(t, server.URL)
	q := queue.New(rdb, 2)
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

// TestImpatienceIsNoFailure: one who brings more wake-ups than he has patience
// for does not have Redis left alone by others.
func TestImpatienceIsNoFailure(t *testing.T) {
	t.Parallel()
	q := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Arm(ctx, []push.WakeUp{wakeUp(time.Hour), wakeUp(time.Hour)}); err == nil || errors.Is(err, queue.ErrDown) {
		t.Errorf("without any patience: %v", err)
	}
	arm(t, q, wakeUp(time.Hour))
}

package queue_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestServe_EarlyWakeUps: asynq truncates the time of a wake-up to its second, so that wake-ups within a second come up
// to a second early. A wake-up that is too early is delivered again until its time has come.
func TestServe_EarlyWakeUps(t *testing.T) {
	t.Parallel()
	q := setup(t)
	var early atomic.Int64
	done := make(chan push.WakeUp, 100)
	serve(t, q, func(_ context.Context, w push.WakeUp) error {
		if in := time.Until(w.At); in > 0 {
			early.Add(1)
			return push.ComeAgain{In: in}
		}
		done <- w
		return nil
	})
	for deadline := time.Now().Add(2 * time.Minute); early.Load() == 0; { // on a busy machine, all may come late
		if time.Now().After(deadline) {
			t.Fatal("no wake-up came early: nothing was tested")
		}
		second := time.Now().UTC().Truncate(time.Second).Add(2 * time.Second)
		var wakeUps []push.WakeUp
		for i := range 5 {
			at := second.Add(time.Duration(i+5) * tenth)
			wakeUps = append(wakeUps, push.WakeUp{Lane: push.Lanes(1)[0], At: at, In: time.Until(at)})
		}
		arm(t, q, wakeUps...)
		for range wakeUps {
			w := <-done
			i := slices.IndexFunc(wakeUps, func(other push.WakeUp) bool { return same(w, other) })
			if i < 0 {
				t.Fatalf("%+v was handled without arming, or twice", w)
			}
			wakeUps[i].Part = -1
		}
		empty(t, q)
		if len(done) > 0 {
			t.Fatalf("%d were handled twice", len(done))
		}
	}
}

// TestArm_OrderWithinSecond: asynq takes wake-ups of the same second by their ids. Whatever their lanes, wake-ups for
// an earlier moment come first, so that none waits behind one that is still early.
func TestArm_OrderWithinSecond(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.Redis(t))
	q := queue.New(rdb, 1, nil)
	second := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	for _, lane := range push.Lanes(4) {
		for i := range 10 {
			at := second.Add(time.Duration(9-i) * tenth)
			arm(t, q, push.WakeUp{Lane: lane, At: at, In: time.Until(at)})
		}
	}
	ids := rdb.ZRange(t.Context(), "asynq:{push-lane0}:scheduled", 0, -1).Val()
	if len(ids) != 40 {
		t.Fatalf("%d are scheduled", len(ids))
	}
	var last time.Time
	for _, id := range ids {
		w := armed(t, rdb, "push-lane0", id)
		if w.At.Before(last) {
			t.Errorf("%s comes behind %s", w.At, last)
		}
		last = w.At
	}
}

package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// TestWakeAt_ClocksApart: what is due by Postgres' clock is woken for then, whether the clock of this process is behind
// or ahead.
func TestWakeAt_ClocksApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -3 * time.Minute, "ahead": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := setup(t)
			calls := make(chan time.Time, 100)
			due := time.Now().Add(2 * time.Second)
			serve(t, q, func(_ context.Context, w push.WakeUp) error {
				calls <- time.Now()
				if early := time.Until(due); early > 0 { // as the deliverer does, who asks Postgres
					return push.ComeAgain{In: early}
				}
				return nil
			})
			w := wakeUp(2 * time.Second)
			w.At = w.At.Add(-off) // Postgres' clock, seen from a process that is off
			arm(t, q, w)
			wrong := time.After(100 * time.Second) // by a wrong clock it would be 3 minutes
			for woken := false; !woken; {
				select {
				case at := <-calls:
					woken = !at.Before(due)
				case <-wrong:
					t.Fatal("not woken")
				}
			}
			empty(t, q)
			if n := len(calls); n > 3 {
				t.Errorf("woken %d times more", n)
			}
		})
	}
}

// TestArm_WaitsByWrongClock: a wake-up is armed again beside one that waits by a wrong clock.
func TestArm_WaitsByWrongClock(t *testing.T) {
	t.Parallel()
	q := setup(t)
	w := wakeUp(time.Hour) // to be handled in an hour, as an armer thinks whose clock is behind Postgres'
	arm(t, q, w)
	w.In = 0
	arm(t, q, w)
	if s := sizes(t, q); s["scheduled"] != 1 || s["pending"] != 1 {
		t.Errorf("%v", s)
	}
	w.In = time.Hour - 3*time.Second // clocks are never quite equal
	arm(t, q, w)
	if s := sizes(t, q); s["scheduled"] != 1 || s["pending"] != 1 {
		t.Errorf("armed again: %v", s)
	}
}

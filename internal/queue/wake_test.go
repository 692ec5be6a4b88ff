package queue_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
)

// TestWake_AfterCommit: a handler that runs already may have asked Postgres before the push was committed. Another one
// begins after every call.
func TestWake_AfterCommit(t *testing.T) {
	t.Parallel()
	q := setup(t)
	w := queue.NewWaker(q, push.Lanes(4), 90*time.Second, slog.New(slog.DiscardHandler))
	var committed, seen atomic.Int64
	serve(t, q, func(ctx context.Context, _ push.WakeUp) error {
		now := committed.Load() // as one that asks Postgres
		for old := seen.Load(); now > old && !seen.CompareAndSwap(old, now); old = seen.Load() {
		}
		select { // and then sends for a while
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	})
	for i := range int64(30) {
		committed.Store(i + 1)
		w.Wake(7, time.Now(), 0)
		eventually(t, "a handler begins afterwards", func() bool { return seen.Load() == i+1 })
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	empty(t, q)
}

// TestWake_Later: what is armed ahead of its time wakes a worker at most two seconds before.
func TestWake_Later(t *testing.T) {
	t.Parallel()
	q := setup(t)
	w := queue.NewWaker(q, push.Lanes(4), 90*time.Second, slog.New(slog.DiscardHandler))
	at := time.Now().UTC().Truncate(time.Second).Add(5 * time.Second)
	for key := range int64(256) {
		w.Wake(key, at, time.Until(at))
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	arrived := make(chan push.WakeUp, 100)
	serve(t, q, func(_ context.Context, w push.WakeUp) error { arrived <- w; return nil })
	lanes := map[push.Lane]bool{}
	for range 4 {
		w := <-arrived
		if !w.At.Equal(at) || time.Now().Before(at.Add(-2*time.Second)) {
			t.Errorf("%+v arrived at %s", w, time.Now())
		}
		lanes[w.Lane] = true
	}
	if len(lanes) != 4 {
		t.Errorf("woken: %v", lanes)
	}
	empty(t, q)
	if len(arrived) > 0 {
		t.Errorf("%d more arrived", len(arrived))
	}
}

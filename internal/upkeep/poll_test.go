package upkeep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// works reports a working Redis.
func works(context.Context) error { return nil }

// next waits for the next wake-up to be handled.
func next(t testing.TB, handled <-chan push.WakeUp) push.WakeUp {
	t.Helper()
	select {
	case w := <-handled:
		return w
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing is handled")
		return push.WakeUp{}
	}
}

// TestPoller_RedisAway: the poller processes the lanes that it owns once Redis has been down for long enough, and for a
// while after Redis is back.
func TestPoller_RedisAway(t *testing.T) {
	t.Parallel()
	var (
		redis error
		now   = time.Now()
	)
	type handledKey struct{}
	p := upkeep.NewPoller(all, func(context.Context) error { return redis }, handler(func(ctx context.Context, w push.WakeUp) error {
		ctx.Value(handledKey{}).(chan push.WakeUp) <- w
		return errors.New("an error to log")
	}), quiet, func() time.Time { return now }, upkeep.PollerConfig{Patience: time.Minute, ArmLease: time.Hour})
	// pass returns the wake-ups that its handlers get, some time after the pass before.
	pass := func(after time.Duration, redisIs error, wantPolling bool) chan push.WakeUp {
		t.Helper()
		now, redis = now.Add(after), redisIs
		handled := make(chan push.WakeUp, 10)
		if full, err := p.Pass(context.WithValue(t.Context(), handledKey{}, handled)); full || err != nil {
			t.Fatal(full, err)
		}
		if p.Polling() != wantPolling || !wantPolling && len(handled) > 0 {
			t.Fatalf("polling %v, handled %d", p.Polling(), len(handled))
		}
		return handled
	}
	gone := errors.New("away")
	pass(0, nil, false)
	pass(time.Hour, gone, false)
	pass(time.Minute-1, gone, false)
	if w := next(t, pass(1, gone, true)); w.Lane != all[0] {
		t.Errorf("handled %+v", w)
	}
	pass(time.Hour, nil, true)
	pass(time.Hour-1, nil, true)
	pass(time.Hour, gone, true)
	pass(time.Hour, nil, true) // the hour starts again
	pass(time.Hour-1, nil, true)
	pass(1, nil, false)
	pass(time.Hour, gone, false) // and so does the patience
	pass(time.Minute, nil, false)
	pass(time.Minute, gone, false)
}

// TestPoller_HangingHandler: a handler that hangs delays no other lane, and Run waits for it at the end.
func TestPoller_HangingHandler(t *testing.T) {
	t.Parallel()
	two := lanes(push.Lanes(2))
	release, handled := make(chan struct{}), make(chan push.WakeUp, 100)
	p := upkeep.NewPoller(two, func(context.Context) error { return errors.New("away") }, handler(func(_ context.Context, w push.WakeUp) error {
		if w.Lane == two[0] {
			<-release
		}
		handled <- w
		return nil
	}), quiet, time.Now, upkeep.PollerConfig{ArmLease: time.Hour})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for range 2 {
		if w := next(t, handled); w.Lane != two[1] {
			t.Errorf("handled %+v", w)
		}
	}
	stop()
	select {
	case <-done:
		t.Error("Run returned while a handler was running")
	case <-time.After(50 * time.Millisecond): // Run must not return, so a fixed time has to do
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

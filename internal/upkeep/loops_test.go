package upkeep_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// claim claims anna's due push for a moment.
func (b *bundle) claim(t testing.TB, lease time.Duration) booking.Claim {
	t.Helper()
	c, err := b.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, "anna"), Lease: lease})
	if err != nil || c.Outcome != booking.Claimed {
		t.Fatalf("%+v, %v", c, err)
	}
	return c
}

// TestReaper: a lost attempt ends by its channel's retry rules, and a push that has failed frees its place.
func TestReaper(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		retry push.Retry
		want  push.Status
	}{
		"tries again":      {push.Retry{MaxAttempts: 2, First: time.Minute, Max: time.Minute}, push.Scheduled},
		"gives up":         {push.Retry{MaxAttempts: 1, First: time.Minute, Max: time.Minute}, push.Failed},
		"fails on unknown": {push.Retry{MaxAttempts: 9, First: time.Minute, Max: time.Minute, FailOnUnknown: true}, push.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, threeRules)
			p := b.submit(t, 0)
			lost := 0
			retry := func(p *push.Push) push.Retry {
				if p.Channel != "log" {
					t.Errorf("asked for the retry rules of %q", p.Channel)
				}
				return row.retry
			}
			reaper := upkeep.NewReaper(b.store, all, b.cache, b.queue, quiet, retry, func() { lost++ }, time.Second)
			b.claim(t, 20*time.Millisecond)
			for lost == 0 {
				if _, err := reaper.Pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.read(t, p.ID); got.Status != row.want || !got.PossiblyDelivered || got.Sends[0].Outcome != push.Unknown || got.LastError == "" {
				t.Errorf("%+v", got)
			}
			_, err := b.Submit(t.Context(), b.tenant, request(0), schedule.Options{})
			if given := err == nil; given != (row.want == push.Failed) {
				t.Errorf("its place was given to another: %v", given)
			}
		})
	}
}

// TestExpirer: a push that is too late expires and frees its place, in the cache as well.
func TestExpirer(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	r := request(-30 * time.Second)
	r.ExpiresAt = time.Now().Add(100 * time.Millisecond)
	res, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	expired := 0
	e := upkeep.NewExpirer(b.store, all, b.cache, quiet, func(n int) { expired += n })
	for expired == 0 {
		if full, err := e.Pass(t.Context()); full || err != nil {
			t.Fatal(full, err)
		}
	}
	if got := b.read(t, res.Push.ID); got.Status != push.Expired || expired != 1 {
		t.Errorf("%d expired: %+v", expired, got)
	}
	b.submit(t, -30*time.Second)
}

// TestLoops_EndWithContext: the loops end with their context, and leave nothing running.
func TestLoops_EndWithContext(t *testing.T) {
	b := setupOwnStore(t, threeRules) // the test closes its store
	before := goleak.IgnoreCurrent()
	b.submit(t, 0)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 5)
	promoted := make(chan struct{}, 1)
	nothing := handler(func(context.Context, push.WakeUp) error { return nil })
	for _, run := range []func(context.Context) error{
		upkeep.NewOwner(b.store, all, quiet).Run,
		upkeep.NewPromoter(b.store, signal(promoted), all, nothing, quiet, func(int) {}, upkeep.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute}).Run,
		upkeep.NewExpirer(b.store, all, b.cache, quiet, func(int) {}).Run,
		upkeep.NewReaper(b.store, all, b.cache, b.queue, quiet, nil, func() {}, time.Second).Run,
		upkeep.NewPoller(all, works, nothing, quiet, time.Now, upkeep.PollerConfig{ArmLease: time.Hour}).Run,
	} {
		go func() { done <- run(ctx) }()
	}
	r := request(0)
	r.Recipient, r.SendAt = "bert", time.Now().Add(30*time.Second)
	if _, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	<-promoted // in the first pass or a later one
	stop()
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	b.store.Close()
	look := func() error {
		return goleak.Find(before, goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/maintnotifications.(*CircuitBreakerManager).cleanupLoop"))
	}
	testenv.UntilWhole(t, 0, func() string { // a handler runs for less than a second
		if left := look(); left != nil {
			return left.Error()
		}
		return ""
	})
}

// signal is a queue that signals its use.
type signal chan struct{}

func (s signal) Arm(context.Context, []push.WakeUp) error {
	select {
	case s <- struct{}{}:
	default:
	}
	return nil
}

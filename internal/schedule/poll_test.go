package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// due books a push that nobody has armed.
func (b *bundle) due(t testing.TB, recipient string) {
	t.Helper()
	b.dueThrough(t, recipient, "log")
}

func (b *bundle) dueThrough(t testing.TB, recipient, channel string) {
	t.Helper()
	d := booking.Draft{Push: push.Push{
		ID: uuid.New(), Tenant: b.tenant, Recipient: recipient, Channel: channel, Message: []byte(`{}`), SendAt: began, RequestedSendAt: began, TTL: time.Hour,
	}}
	if _, err := b.store.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}}); err != nil {
		t.Fatal(err)
	}
}

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

// works and away are Redis at work, and one that does not answer.
func works(context.Context) error { return nil }
func away(context.Context) error  { return errors.New("away") }

// poller polls at once when Redis is away, and looks for what has been due for an hour when it works.
func (b *bundle) poller(works func(context.Context) error, concurrency int, h handler) *schedule.Poller {
	return schedule.NewPoller(b.store, works, h, quiet, func(int) {}, time.Now, schedule.PollerConfig{ArmLease: time.Hour, Concurrency: concurrency})
}

// TestPoller_RedisAway: the poller handles what is due once Redis has been away for long enough, one wake-up for each
// recipient, and for a while after Redis is back.
func TestPoller_RedisAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.due(t, "anna")
	}
	var (
		redis error
		now   = time.Now()
	)
	type handledKey struct{}
	p := schedule.NewPoller(b.store, func(context.Context) error { return redis }, handler(func(ctx context.Context, w push.WakeUp) error {
		ctx.Value(handledKey{}).(chan push.WakeUp) <- w
		return errors.New("which is logged")
	}), quiet, nil, func() time.Time { return now }, schedule.PollerConfig{Patience: time.Minute, ArmLease: time.Hour, Concurrency: 4})
	// pass returns what the handlers that it starts are given, some time after the pass before.
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
	if w := next(t, pass(1, gone, true)); w.RecipientKey != push.RecipientKey(b.tenant, "anna") {
		t.Errorf("handled %+v", w)
	}
	pass(time.Hour, nil, true)
	pass(time.Hour-1, nil, true)
	pass(time.Hour, gone, true)
	pass(time.Hour, nil, true) // the hour begins anew
	pass(time.Hour-1, nil, true)
	pass(1, nil, false)
	pass(time.Hour, gone, false) // and so does patience
	pass(time.Minute, nil, false)
	pass(time.Minute, gone, false)
}

// TestPoller_Overdue: the poller handles and counts what is overdue although Redis works, and not what is only due.
func TestPoller_Overdue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "anna")
	b.due(t, "bert")
	handled, found := make(chan push.WakeUp, 10), 0
	pass := func(armLease time.Duration) *schedule.Poller {
		t.Helper()
		p := schedule.NewPoller(b.store, works, handler(func(_ context.Context, w push.WakeUp) error { handled <- w; return nil }), quiet,
			func(n int) { found += n }, time.Now, schedule.PollerConfig{ArmLease: armLease, Concurrency: 4})
		if _, err := p.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p
	}
	pass(time.Hour)
	if len(handled) > 0 || found > 0 {
		t.Fatalf("%d were handled that are only due", len(handled))
	}
	p := pass(time.Nanosecond)
	if first, second := next(t, handled), next(t, handled); first.RecipientKey == second.RecipientKey || found != 2 || p.Polling() {
		t.Errorf("handled %+v and %+v, found %d, polling %v", first, second, found, p.Polling())
	}
}

// TestPoller_OncePerRecipient: one handler runs for a recipient, however many of its pushes are due.
func TestPoller_OncePerRecipient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.due(t, "anna")
	}
	b.due(t, "bert")
	handled := make(chan push.WakeUp, 10)
	ctx, stop := context.WithCancel(t.Context())
	p := b.poller(away, 4, func(ctx context.Context, w push.WakeUp) error { handled <- w; <-ctx.Done(); return nil })
	for range 3 {
		if full, err := p.Pass(ctx); full || err != nil {
			t.Fatal(full, err)
		}
	}
	if first, second := next(t, handled), next(t, handled); first.RecipientKey == second.RecipientKey || len(handled) > 0 {
		t.Errorf("handled %+v, %+v and %d more", first, second, len(handled))
	}
	stop()
	_ = p.Run(ctx) // waits for the handlers
}

// TestPoller_EachChannel: a recipient that waits for one channel is handled for another.
func TestPoller_EachChannel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "anna")
	b.dueThrough(t, "anna", "sms")
	handled := make(chan push.WakeUp, 10)
	p := b.poller(away, 4, func(_ context.Context, w push.WakeUp) error { handled <- w; return nil })
	if _, err := p.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first, second := next(t, handled), next(t, handled); first.Channel == second.Channel {
		t.Errorf("handled %+v, %+v", first, second)
	}
}

// TestPoller_HangingHandler: a handler that hangs delays no other recipient, and Run waits for it at the end.
func TestPoller_HangingHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.due(t, "anna")
	hangs := push.RecipientKey(b.tenant, "anna")
	release, handled := make(chan struct{}), make(chan push.WakeUp, 100)
	p := b.poller(away, 2, func(_ context.Context, w push.WakeUp) error {
		handled <- w
		if w.RecipientKey == hangs {
			<-release
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	if w := next(t, handled); w.RecipientKey != hangs {
		t.Errorf("handled %+v", w)
	}
	b.due(t, "bert")
	for range 2 {
		if w := next(t, handled); w.RecipientKey == hangs {
			t.Error("handled while it is being handled")
		}
	}
	stop()
	select {
	case <-done:
		t.Error("Run returned while a handler ran")
	case <-time.After(50 * time.Millisecond): // it may not return, so this is what can be waited for
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPoller_AllHandlersHang: a pass returns all the same, and starts no more handlers than may run at once.
func TestPoller_AllHandlersHang(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, recipient := range []string{"anna", "bert", "carl"} {
		b.due(t, recipient)
	}
	handled := make(chan push.WakeUp, 10)
	ctx, stop := context.WithCancel(t.Context())
	p := b.poller(away, 2, func(ctx context.Context, w push.WakeUp) error { handled <- w; <-ctx.Done(); return nil })
	for range 2 {
		if full, err := p.Pass(ctx); full || err != nil {
			t.Fatal(full, err)
		}
	}
	next(t, handled)
	next(t, handled)
	if len(handled) > 0 {
		t.Errorf("%d handlers too many", len(handled))
	}
	stop()
	_ = p.Run(ctx)
}

// slow is a queue that takes longer than a caller waits for it, for each tenant as long as is said.
type slow struct {
	queue
	takes map[uuid.UUID]time.Duration
}

func (q *slow) Arm(ctx context.Context, wakeUps []push.WakeUp) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("arm: %w", ctx.Err())
	case <-time.After(q.takes[wakeUps[0].Tenant]):
		return q.queue.Arm(ctx, wakeUps)
	}
}

// TestSubmit_SlowQueue: wake-ups that take longer than the answer waits are armed behind it, and not left to the
// promoter, which would do it fifteen seconds later. A tenant whose wake-ups are all that slow takes only its part.
func TestSubmit_SlowQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, _, err := b.store.CreateTenant(t.Context(), uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	const loud = 80
	q := &slow{takes: map[uuid.UUID]time.Duration{b.tenant: time.Minute, other: 600 * time.Millisecond}}
	svc := schedule.New(b.store, b.cache, q, quiet, b.metrics, func() time.Time { return began }, schedule.Config{
		Policy: threeRules, Channels: []string{"log"}, DefaultTTL: time.Hour, MaxHorizon: time.Hour, ArmLease: time.Minute,
	})
	submit := func(tenant uuid.UUID, recipient string) push.Push {
		r := request(0)
		r.Recipient = recipient
		res, err := svc.Submit(t.Context(), tenant, r, schedule.Options{})
		if err != nil || res.Push.ArmedUntil.IsZero() {
			t.Errorf("%+v, %v", res, err)
		}
		return res.Push
	}
	var wg sync.WaitGroup
	for i := range loud {
		wg.Go(func() { submit(b.tenant, fmt.Sprintf("loud%d", i)) })
	}
	wg.Wait()
	p := submit(other, "quiet")
	testenv.Until(t, 10*time.Millisecond, "the wake-up is armed", func() bool {
		w := q.take()
		return len(w) == 1 && w[0].Push == p.ID
	})
}

// stuck is a queue whose Redis does not answer.
type stuck struct{}

func (stuck) Arm(ctx context.Context, _ []push.WakeUp) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestSubmit_QueueHangs: a submit does not wait for a queue that does not answer, because the push is booked by then.
func TestSubmit_QueueHangs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	svc := schedule.New(b.store, b.cache, stuck{}, quiet, b.metrics, func() time.Time { return began }, schedule.Config{
		Policy: threeRules, Channels: []string{"log"}, DefaultTTL: time.Hour, MaxHorizon: time.Hour, ArmLease: time.Minute,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if res, err := svc.Submit(ctx, b.tenant, request(0), schedule.Options{}); err != nil || res.Push.ArmedUntil.IsZero() {
		t.Fatalf("%+v, %v", res, err)
	}
	if ctx.Err() != nil {
		t.Error("it waited as long as its caller")
	}
}

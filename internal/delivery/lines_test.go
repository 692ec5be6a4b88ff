package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// fleet is workers that share a store, a Redis and the providers of the
// channels sms, whose speed may be limited, and log.
type fleet struct {
	*depot
	sms     *provider
	workers []*delivery.Lobby
	slots   atomic.Int64 // that the workers took
	stop    func()
}

// counting is a pacer that counts the slots it gives.
type counting struct {
	*pace.Pacer
	slots *atomic.Int64
}

func (c counting) Take(ctx context.Context, channel string, s pace.Speed, wanted int) (int, time.Duration) {
	slots, wait := c.Pacer.Take(ctx, channel, s, wanted)
	c.slots.Add(int64(slots))
	return slots, wait
}

// newFleet starts so many workers with ten places each.
func newFleet(t *testing.T, workers int, policy quota.Policy, speed pace.Speed, redisURL string) *fleet {
	t.Helper()
	f := &fleet{depot: open(t, policy), sms: &provider{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range workers {
		set, err := channel.NewSet(
			channel.Entry{Name: "log", Channel: f.provider, Retry: retry},
			channel.Entry{Name: "sms", Channel: f.sms, Speed: speed, Retry: push.Retry{MaxAttempts: 100, First: 200 * time.Millisecond, Max: 400 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		o, err := redis.ParseURL(redisURL)
		if err != nil {
			t.Fatal(err)
		}
		o.DialTimeout, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = 200*time.Millisecond, -1, 1, true
		rdb := redis.NewClient(o)
		t.Cleanup(func() { _ = rdb.Close() })
		d := delivery.New(f.store, f.cache, set, quiet, f.seen, delivery.Config{
			Policy: policy, Lease: 20 * time.Second, Concurrency: 10, Pacer: counting{pace.New(rdb, nil, fmt.Sprint("worker ", i), func(error) {}), &f.slots},
		})
		l := delivery.NewLobby(d, f.store, quiet)
		f.workers = append(f.workers, l)
		running.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	f.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(f.stop)
	return f
}

// wake tells all workers of a recipient's push, as a queue that delivers twice.
func (f *fleet) wake(t *testing.T, p push.Push) {
	t.Helper()
	w := push.WakeUp{Push: p.ID, Tenant: p.Tenant, RecipientKey: push.RecipientKey(p.Tenant, p.Recipient), Channel: p.Channel, At: p.NextAt}
	for _, l := range f.workers {
		if err := l.Handle(t.Context(), w); err != nil {
			t.Error(err)
		}
	}
}

// due books a push that is due, and wakes the workers.
func (f *fleet) due(t *testing.T, recipient, channel string) push.Push {
	t.Helper()
	p := f.book(t, recipient, channel, thisSecond().Add(-10*time.Second))
	f.wake(t, p)
	return p
}

// eventually waits for a fact.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// times are when attempts were made, in their order.
func (p *provider) times() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var at []time.Time
	for _, one := range p.took {
		at = append(at, one.at)
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// TestThreeWorkersKeepOneSpeed: sms goes at five per second at most, however many
// workers there are; log is not held up, not even for the same recipients.
func TestThreeWorkersKeepOneSpeed(t *testing.T) {
	t.Parallel()
	const messages = 40
	speed := pace.PerSpan(5, time.Second, 1)
	f := newFleet(t, 3, nil, speed, testenv.Redis(t))
	began := time.Now()
	for i := range messages {
		f.due(t, fmt.Sprint("r", i), "sms")
	}
	for i := range messages {
		f.due(t, fmt.Sprint("r", i), "log")
	}
	eventually(t, "all of log is sent", func() bool { return len(f.all()) == messages })
	if n := len(f.sms.all()); n == messages {
		t.Error("all sms were sent before log was: it was held up")
	}
	eventually(t, "all of sms is sent", func() bool { return len(f.sms.all()) == messages })
	for i, at := range f.sms.times() { // a busy machine sends late, but nothing before its slot
		if after := at.Sub(began); after < time.Duration(i)*speed.Every-20*time.Millisecond {
			t.Errorf("sms %d came after %s, before its slot", i, after)
		}
	}
	for _, took := range f.sms.all() {
		if got := f.read(t, took.push.ID); got.Attempts != 1 {
			t.Errorf("%d attempts", got.Attempts)
		}
	}
	f.audit(t, nil)
}

// TestTenantsTakeTurnsInLine: of 100 pushes of one tenant that wait for a slow channel,
// at most a few more are sent before the one push of another, whose time came last.
func TestTenantsTakeTurnsInLine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, nil, pace.PerSpan(5, time.Second, 1), testenv.Redis(t))
	for i := range 100 {
		f.due(t, fmt.Sprint("r", i), "sms")
	}
	flood := f.tenant
	f.tenant = uuid.New()
	other := f.book(t, "anna", "sms", thisSecond())
	before := len(f.sms.all())
	f.wake(t, other)
	sent := func() []uuid.UUID {
		var tenants []uuid.UUID
		for _, took := range f.sms.all() {
			tenants = append(tenants, took.push.Tenant)
		}
		return tenants
	}
	eventually(t, "the other's is sent", func() bool { return slices.Contains(sent(), other.Tenant) })
	if i := slices.Index(sent(), other.Tenant); i > before+5 {
		t.Errorf("%d of the tenant that has many were sent first, %d of them before the other's was there", i, before)
	}
	if n := f.workers[0].Busy(50); len(n) != 1 || n[0] != (push.Source{Tenant: flood, Channel: "sms"}) {
		t.Errorf("busy with %v", n)
	}
}

// TestAPauseIsForAllWorkers: one provider's answer says how long; nothing is
// sent by anybody until then, and then one is tried first.
func TestAPauseIsForAllWorkers(t *testing.T) {
	t.Parallel()
	for name, speed := range map[string]pace.Speed{"any speed": {}, "limited": pace.PerSpan(50, time.Second, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 2, nil, speed, testenv.Redis(t))
			const wait = 1500 * time.Millisecond
			var asked atomic.Pointer[time.Time]
			f.sms.answer = func(context.Context, push.Push, int) channel.Result {
				now := time.Now()
				if asked.CompareAndSwap(nil, &now) {
					return channel.Result{Outcome: push.Refused, RetryAfter: wait, Error: "busy"}
				}
				return channel.Result{Outcome: push.Delivered}
			}
			f.due(t, "first", "sms")
			eventually(t, "the provider asks for a pause", func() bool { return asked.Load() != nil })
			eventually(t, "both workers know of it", func() bool {
				return f.workers[0].Held()["sms"] > 0 && f.workers[1].Held()["sms"] > 0
			})
			for i := range 20 {
				f.due(t, fmt.Sprint("r", i), "sms")
			}
			if n := f.workers[0].Waiting()["sms"]; n != 20 {
				t.Errorf("%d wait", n)
			}
			eventually(t, "all are sent", func() bool { return len(f.sms.all()) >= 21 })
			for i, at := range f.sms.times()[1:] {
				if after := at.Sub(*asked.Load()); after < wait-5*time.Millisecond {
					t.Errorf("attempt %d was made %s after the provider asked for %s", i+2, after, wait)
				}
			}
		})
	}
}

// TestAProviderThatIsDown is left alone: pushes wait without an attempt, expire
// as promised, and are sent when it is back. Another channel is not touched.
func TestAProviderThatIsDown(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil, pace.Speed{}, testenv.Redis(t))
	const pause = 400 * time.Millisecond // of the breaker: see newFleet
	began := time.Now()
	var down atomic.Bool
	down.Store(true)
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		if down.Load() {
			return channel.Result{Outcome: push.Refused, Down: true, Error: "no connection: connection refused"}
		}
		return channel.Result{Outcome: push.Delivered}
	}
	for i := range 10 {
		f.due(t, fmt.Sprint("first", i), "sms")
	}
	eventually(t, "the breaker opens", func() bool { return f.workers[0].Held()["sms"] > 0 })
	var waiting []push.Push
	for i := range 100 {
		waiting = append(waiting, f.due(t, fmt.Sprint("r", i), "sms"))
		f.due(t, fmt.Sprint("r", i), "log")
	}
	eventually(t, "log is sent", func() bool { return len(f.all()) == 100 })
	eventually(t, "it is tried again, and fails", func() bool { return len(f.sms.all()) >= 12 })
	// Ten attempts open the breaker, with as many under way; then there is one after each pause.
	most := 20 + int(time.Since(began)/pause)
	if n := len(f.sms.all()); n > most {
		t.Errorf("%d attempts at a provider that is down, want at most %d", n, most)
	}
	untouched := 0
	for _, p := range waiting {
		if f.read(t, p.ID).Attempts == 0 {
			untouched++
		}
	}
	if untouched < 100-most {
		t.Errorf("only %d of 100 wait without an attempt, want at least %d", untouched, 100-most)
	}
	down.Store(false)
	eventually(t, "those that waited are sent", func() bool {
		return !slices.ContainsFunc(waiting, func(p push.Push) bool {
			got := f.read(t, p.ID)
			return got.Status != push.Sent && got.Attempts == 0
		})
	})
	eventually(t, "the channel works as ever", func() bool { return f.workers[0].Held()["sms"] == 0 })
}

// TestWhoWaitsInLineExpires: that nobody's turn has come is no excuse.
func TestWhoWaitsInLineExpires(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil, pace.PerSpan(1, time.Hour, 1), testenv.Redis(t))
	sent := f.due(t, "first", "sms")
	eventually(t, "the first has the only slot of the hour", func() bool { return len(f.sms.all()) == 1 })
	p := push.Push{ID: sent.ID, Tenant: f.tenant, Recipient: "late", Channel: "sms", Message: []byte(`{}`)}
	p.ID[15]++
	p.SendAt = thisSecond().Add(-time.Second)
	p.RequestedSendAt, p.ExpiresAt = p.SendAt, time.Now().Add(time.Second)
	v, err := f.store.Book(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}})
	if err != nil {
		t.Fatal(err)
	}
	f.wake(t, v[0].Push)
	eventually(t, "it expires", func() bool {
		if _, err := f.store.Expire(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		return f.read(t, p.ID).Status == push.Expired
	})
	if got := f.read(t, p.ID); got.Attempts != 0 {
		t.Errorf("%d attempts", got.Attempts)
	}
}

// TestTurnsAreNotWasted: of those who wait in line, many have nothing to send
// any more. The slots go to those who have.
func TestTurnsAreNotWasted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil, pace.PerSpan(10, time.Second, 1), testenv.Redis(t))
	for i := range 5 {
		f.due(t, fmt.Sprint("r", i), "sms")
		for n := range 50 {
			f.wake(t, push.Push{Tenant: f.tenant, Recipient: fmt.Sprintf("nobody %d %d", i, n), Channel: "sms"})
		}
	}
	eventually(t, "all are sent", func() bool { return len(f.sms.all()) == 5 })
	if n := f.slots.Load(); n > 50 { // one for each who waits would be 255
		t.Errorf("%d slots were taken for 5 pushes", n)
	}
}

// TestAWorkerThatStops has those who wait in its lines woken by others.
func TestAWorkerThatStops(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil, pace.PerSpan(1, time.Hour, 1), testenv.Redis(t))
	for i := range 5 {
		f.book(t, fmt.Sprint("r", i), "sms", thisSecond().Add(-10*time.Second))
	}
	promote := func() (armed int) {
		n, err := f.store.Promote(t.Context(), time.Minute, time.Minute, 10, nil, func(ws []push.WakeUp) error {
			for _, w := range ws {
				if err := f.workers[0].Handle(t.Context(), w); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := promote(); n != 5 {
		t.Fatalf("%d armed", n)
	}
	eventually(t, "one is sent", func() bool { return len(f.sms.all()) == 1 })
	f.stop()
	armed, err := f.store.Promote(t.Context(), time.Minute, time.Minute, 10, nil, func([]push.WakeUp) error { return nil })
	if err != nil || armed != 4 {
		t.Errorf("%d are to be armed again, %v; want the four that waited", armed, err)
	}
}

// TestSpeedWithoutRedis: three workers together stay below the speed, and go on.
func TestSpeedWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	f := newFleet(t, 3, nil, pace.PerSpan(20, time.Second, 1), server.URL)
	for i := range 6 {
		f.due(t, fmt.Sprint("warm", i), "sms")
	}
	eventually(t, "it works with Redis", func() bool { return len(f.sms.all()) == 6 })
	o, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	heard := func() []redis.Z { // of workers, the longest ago first
		workers, err := rdb.ZRangeWithScores(t.Context(), "sq:pace:workers", 0, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		return workers
	}
	eventually(t, "all workers are there", func() bool { return len(heard()) == 3 })
	// Each look says how many there are. Who looks for the second time from now on
	// has the answer of the first, by which all were there.
	for range 2 {
		last := heard()[2].Score
		eventually(t, "each has looked again", func() bool { return heard()[0].Score > last })
	}
	kill(t, server)
	for i := range 30 {
		f.due(t, fmt.Sprint("r", i), "sms")
	}
	began := time.Now()
	eventually(t, "some are sent", func() bool { return len(f.sms.all()) >= 26 })
	if rate := 20 / time.Since(began).Seconds(); rate > 15 {
		t.Errorf("%.1f a second, want half of 20 at most", rate)
	}
}

func kill(t *testing.T, server *devstack.Server) {
	t.Helper()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
}

// TestAHangingProviderLeavesRoom for other channels: it may use three quarters
// of the places.
func TestAHangingProviderLeavesRoom(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil, pace.Speed{}, testenv.Redis(t))
	release := make(chan struct{})
	var handlers sync.WaitGroup
	defer func() { close(release); handlers.Wait() }()
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		<-release
		return channel.Result{Outcome: push.Delivered}
	}
	for i := range 30 {
		handlers.Go(func() { f.due(t, fmt.Sprint("r", i), "sms") })
	}
	eventually(t, "the provider has what it may have", func() bool { return len(f.sms.all()) >= 7 })
	f.due(t, "anna", "log")
	eventually(t, "log is sent while sms hangs", func() bool { return len(f.all()) == 1 })
}

// TestALineThatClosesDuringAnAttempt: the recipient of the attempt has to wait
// in that line as well. Its wake-up comes again, elsewhere.
func TestALineThatClosesDuringAnAttempt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, nil, pace.PerSpan(100, time.Second, 1), testenv.Redis(t))
	sending, answer := make(chan struct{}, 1), make(chan struct{})
	f.answer = func(context.Context, push.Push, int) channel.Result {
		sending <- struct{}{}
		<-answer
		return channel.Result{Outcome: push.Delivered}
	}
	f.book(t, "anna", "log", thisSecond().Add(-10*time.Second))
	f.book(t, "anna", "sms", thisSecond().Add(-9*time.Second))
	handled := make(chan error, 1)
	w := f.wakeUp("anna")
	w.Channel = "log"
	go func() { handled <- f.workers[0].Handle(t.Context(), w) }()
	<-sending
	w.Channel = "sms"
	if err := f.workers[0].Handle(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its turn comes, and finds it busy", func() bool { return f.workers[0].Waiting()["sms"] == 0 })
	f.flagged(t, "anna")
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	nobody := f.wakeUp("nobody")
	nobody.Channel = "sms"
	eventually(t, "the worker stops", func() bool {
		return errors.As(f.workers[0].Handle(t.Context(), nobody), new(push.Early))
	})
	close(answer)
	if err := <-handled; !errors.As(err, new(push.Early)) {
		t.Errorf("the handler returned %v, and nobody looks after the sms", err)
	}
	<-stopped
}

// flagged waits until an attempt knows that another push of the recipient waits.
func (f *fleet) flagged(t *testing.T, recipient string) {
	t.Helper()
	eventually(t, "the attempt is told", func() bool {
		c, err := f.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(f.tenant, recipient), Channel: "sms", Lease: time.Minute})
		return err == nil && c.Outcome == booking.Nothing
	})
}

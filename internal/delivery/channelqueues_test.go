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

// workersBundle is workers that share a store, a Redis and the providers of the
// channels sms, whose speed may be limited, and log.
type workersBundle struct {
	*bundle
	sms     *provider
	workers []*delivery.Worker
	taken   atomic.Int64 // send times that the workers took from the pacer
	stop    func()
}

// counting is a pacer that counts the send times it gives.
type counting struct {
	*pace.Pacer
	taken *atomic.Int64
}

func (c counting) Take(ctx context.Context, channel string, s pace.Speed, wanted int) (int, time.Duration) {
	taken, wait := c.Pacer.Take(ctx, channel, s, wanted)
	c.taken.Add(int64(taken))
	return taken, wait
}

// setupWorkers starts so many workers with ten slots each.
func setupWorkers(t *testing.T, workers int, policy quota.Policy, speed pace.Speed, redisURL string) *workersBundle {
	t.Helper()
	f := &workersBundle{bundle: setup(t, policy), sms: &provider{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range workers {
		set, err := channel.NewSet(
			channel.Entry{Name: "log", Channel: f.provider, Retry: retry},
			channel.Entry{Name: "sms", Channel: f.sms, Speed: speed, Retry: push.Retry{MaxAttempts: 100, First: 200 * time.Millisecond, Max: 400 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		rdb := testenv.RedisClient(t, redisURL, func(o *redis.Options) {
			o.DialTimeout, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = 200*time.Millisecond, -1, 1, true
		})
		w := delivery.New(f.store, f.cache, set, quiet, f.metrics, delivery.Config{
			Policy: policy, Lease: 20 * time.Second, Concurrency: 10, Pacer: counting{pace.New(rdb, nil, fmt.Sprint("worker ", i), func(error) {}), &f.taken},
		})
		f.workers = append(f.workers, w)
		running.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	f.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(f.stop)
	return f
}

// wake tells all workers of a recipient's push, as a queue that delivers twice.
func (f *workersBundle) wake(t *testing.T, p push.Push) {
	t.Helper()
	wake := push.WakeUp{Push: p.ID, Tenant: p.Tenant, RecipientKey: push.RecipientKey(p.Tenant, p.Recipient), Channel: p.Channel, At: p.NextAt}
	for _, w := range f.workers {
		if err := w.Handle(t.Context(), wake); err != nil {
			t.Error(err)
		}
	}
}

// due books a push that is due, and wakes the workers.
func (f *workersBundle) due(t *testing.T, recipient, channel string) push.Push {
	t.Helper()
	p := f.book(t, recipient, channel, thisSecond().Add(-10*time.Second))
	f.wake(t, p)
	return p
}

// waiting counts the recipients in a worker's queue of the channel sms.
func (f *workersBundle) waiting(worker int) (n int) {
	f.workers[worker].Channels(func(channel string, waiting int, _ time.Duration) {
		if channel == "sms" {
			n = waiting
		}
	})
	return n
}

// held is how much longer the channel sms pauses at a worker.
func (f *workersBundle) held(worker int) (d time.Duration) {
	f.workers[worker].Channels(func(channel string, _ int, held time.Duration) {
		if channel == "sms" {
			d = held
		}
	})
	return d
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

// However many workers there are, sms goes at five per second at most; log is not held
// up, not even for the same recipients.
func TestWorkers_ShareOneSpeed(t *testing.T) {
	t.Parallel()
	const messages = 40
	speed := pace.PerSpan(5, time.Second, 1)
	f := setupWorkers(t, 3, nil, speed, testenv.Redis(t))
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

// Of 100 pushes of one tenant that wait for a slow channel, at most a few more are sent
// before the one push of another tenant, which was due last.
func TestWorkers_TenantsTakeTurns(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 2, nil, pace.PerSpan(5, time.Second, 1), testenv.Redis(t))
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
	eventually(t, "the other tenant's is sent", func() bool { return slices.Contains(sent(), other.Tenant) })
	if i := slices.Index(sent(), other.Tenant); i > before+5 {
		t.Errorf("%d of the tenant that has many were sent first, %d of them before the other's was there", i, before)
	}
	if n := f.workers[0].Busy(50); len(n) != 1 || n[0] != (push.TenantChannel{Tenant: flood, Channel: "sms"}) {
		t.Errorf("busy with %v", n)
	}
}

// The answer of a provider says how long all workers pause; after that, one push is tried
// first.
func TestWorkers_SharePauses(t *testing.T) {
	t.Parallel()
	for name, speed := range map[string]pace.Speed{"any speed": {}, "limited": pace.PerSpan(50, time.Second, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupWorkers(t, 2, nil, speed, testenv.Redis(t))
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
				return f.held(0) > 0 && f.held(1) > 0
			})
			for i := range 20 {
				f.due(t, fmt.Sprint("r", i), "sms")
			}
			if n := f.waiting(0); n != 20 {
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

// Pushes for a provider that is down wait without an attempt, and are sent when it is
// back. Another channel goes on.
func TestWorkers_ProviderDown(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, nil, pace.Speed{}, testenv.Redis(t))
	const pause = 400 * time.Millisecond // of the breaker: see setupWorkers
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
	eventually(t, "the breaker opens", func() bool { return f.held(0) > 0 })
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
	eventually(t, "the channel works as ever", func() bool { return f.held(0) == 0 })
}

// A push whose recipient waits in a channel's queue expires in time.
func TestWorkers_QueuedPushExpires(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, nil, pace.PerSpan(1, time.Hour, 1), testenv.Redis(t))
	sent := f.due(t, "first", "sms")
	eventually(t, "the first has the only send time of the hour", func() bool { return len(f.sms.all()) == 1 })
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

// Many recipients in the queue have nothing to send any more. A permit that they do not
// use goes to the next.
func TestWorkers_PermitsAreNotWasted(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, nil, pace.PerSpan(10, time.Second, 1), testenv.Redis(t))
	for i := range 5 {
		f.due(t, fmt.Sprint("r", i), "sms")
		for n := range 50 {
			f.wake(t, push.Push{Tenant: f.tenant, Recipient: fmt.Sprintf("nobody %d %d", i, n), Channel: "sms"})
		}
	}
	eventually(t, "all are sent", func() bool { return len(f.sms.all()) == 5 })
	if n := f.taken.Load(); n > 50 { // one for each recipient would be 255
		t.Errorf("%d send times were taken for 5 pushes", n)
	}
}

// A worker that stops leaves the recipients in its queues to other workers.
func TestWorkers_StoppedWorkerEmptiesItsQueues(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, nil, pace.PerSpan(1, time.Hour, 1), testenv.Redis(t))
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

// Without Redis, three workers together stay below the speed, and go on.
func TestWorkers_SpeedWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	f := setupWorkers(t, 3, nil, pace.PerSpan(20, time.Second, 1), server.URL)
	for i := range 6 {
		f.due(t, fmt.Sprint("warm", i), "sms")
	}
	eventually(t, "it works with Redis", func() bool { return len(f.sms.all()) == 6 })
	rdb := testenv.RedisClient(t, server.URL)
	heard := func() []redis.Z { // of workers, the longest ago first
		workers, err := rdb.ZRangeWithScores(t.Context(), "sq:pace:workers", 0, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		return workers
	}
	eventually(t, "all workers are there", func() bool { return len(heard()) == 3 })
	// Each look says how many there are. A worker that looks for the second time from now
	// on has the answer of the first, by which all were there.
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

// A provider that hangs leaves slots to other channels: it may use three quarters.
func TestWorkers_HangingProviderLeavesSlots(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, nil, pace.Speed{}, testenv.Redis(t))
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

// A channel's queue closes during an attempt whose recipient has to wait in it as well.
// The wake-up comes again, at another worker.
func TestWorkers_QueueClosesDuringAttempt(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, nil, pace.PerSpan(100, time.Second, 1), testenv.Redis(t))
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
	eventually(t, "it gets a permit, and is busy", func() bool { return f.waiting(0) == 0 })
	f.flagged(t, "anna")
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	nobody := f.wakeUp("nobody")
	nobody.Channel = "sms"
	eventually(t, "the worker stops", func() bool {
		return errors.As(f.workers[0].Handle(t.Context(), nobody), new(push.ComeAgain))
	})
	close(answer)
	if err := <-handled; !errors.As(err, new(push.ComeAgain)) {
		t.Errorf("the handler returned %v, and no worker looks after the sms", err)
	}
	<-stopped
}

// flagged waits until an attempt knows that the recipient has another push to send.
func (f *workersBundle) flagged(t *testing.T, recipient string) {
	t.Helper()
	eventually(t, "the attempt is told", func() bool {
		c, err := f.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(f.tenant, recipient), Channel: "sms", Lease: time.Minute})
		return err == nil && c.Outcome == booking.Nothing
	})
}

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
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// workersBundle is workers that share a store, a Redis and the providers of the channels sms, which may have a speed
// limit, and log.
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

func (c counting) Take(ctx context.Context, o pace.Order) pace.Slots {
	s := c.Pacer.Take(ctx, o)
	c.taken.Add(int64(s.Taken))
	return s
}

// setupWorkers starts workers with ten slots each, on a Redis that answers.
func setupWorkers(t testing.TB, workers int, speed pace.Speed, options ...func(*delivery.Config)) *workersBundle {
	t.Helper()
	url := testenv.Redis(t)
	return setupWorkersOn(t, workers, speed, func() redisclient.Client { return testenv.RedisClient(t, url) }, options...)
}

// setupWorkersOn starts workers with clients of a Redis.
func setupWorkersOn(t testing.TB, workers int, speed pace.Speed, client func() redisclient.Client, options ...func(*delivery.Config)) *workersBundle {
	t.Helper()
	f := &workersBundle{bundle: setup(t, nil), sms: &provider{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range workers {
		set, err := channel.NewSet(
			channel.Entry{Name: "log", Channel: f.provider, Retry: retry},
			channel.Entry{Name: "sms", Channel: f.sms, Speed: speed, Retry: push.Retry{MaxAttempts: 100, First: 200 * time.Millisecond, Max: 400 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		cfg := delivery.Config{
			Lease: 20 * time.Second, Concurrency: 10, Lanes: func() []push.Lane { return push.Lanes(4) }, Pacer: counting{pace.New(client(), nil, fmt.Sprint("worker ", i), func(error) {}), &f.taken},
		}
		for _, set := range options {
			set(&cfg)
		}
		w := delivery.New(f.store, f.cache, set, f.waker, quiet, f.metrics, cfg)
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

// wake wakes all workers for all lanes, as a queue that delivers twice.
func (f *workersBundle) wake(t *testing.T) {
	t.Helper()
	for _, w := range f.workers {
		for _, l := range push.Lanes(4) {
			if err := w.Handle(t.Context(), push.WakeUp{Lane: l}); err != nil {
				t.Error(err)
			}
		}
	}
}

// logSends waits until log has sent n pushes. Meanwhile it wakes the workers now and then, as owners of lanes do for
// overdue pushes.
func (f *workersBundle) logSends(t *testing.T, n int) {
	t.Helper()
	last := time.Now()
	eventually(t, "all of log is sent", func() bool {
		if time.Since(last) > 500*time.Millisecond {
			f.wake(t)
			last = time.Now()
		}
		return len(f.all()) == n
	})
}

// due books a push that is due for each of some recipients, and wakes the workers.
func (f *workersBundle) due(t *testing.T, channel string, recipients ...string) []push.Push {
	t.Helper()
	booked := f.bookAll(t, channel, thisSecond().Add(-10*time.Second), recipients...)
	f.wake(t)
	return booked
}

// waiting counts the recipients in the first worker's queue of the channel sms.
func (f *workersBundle) waiting() (n int) {
	f.workers[0].Channels(func(channel string, waiting int, _ time.Duration, _ int) {
		if channel == "sms" {
			n = waiting
		}
	})
	return n
}

// held reports whether the channel sms pauses at a worker, and how many tenants are held there.
func (f *workersBundle) held(worker int) (all bool, tenants int) {
	f.workers[worker].Channels(func(channel string, _ int, held time.Duration, n int) {
		if channel == "sms" {
			all, tenants = held > 0, n
		}
	})
	return all, tenants
}

// holds reports whether a worker holds the only tenant.
func (f *workersBundle) holds(worker int) bool {
	_, tenants := f.held(worker)
	return tenants > 0
}

// eventually waits for a fact.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	testenv.Until(t, 2*time.Millisecond, what, is)
}

// times returns the times of the attempts, in order.
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

// However many workers there are, sms sends two per second at most; log is not delayed, not even for the same
// recipients.
func TestWorkers_ShareOneSpeed(t *testing.T) {
	t.Parallel()
	const messages = 12
	speed := pace.PerSpan(2, time.Second, 1)
	f := setupWorkers(t, 3, speed)
	began := time.Now()
	f.due(t, "sms", names("r", messages)...)
	f.due(t, "log", names("r", messages)...)
	f.logSends(t, messages)
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
	f := setupWorkers(t, 2, pace.PerSpan(5, time.Second, 1))
	f.due(t, "sms", names("r", 100)...)
	f.tenant = uuid.New()
	other := f.book(t, "anna", "sms", thisSecond())
	before := len(f.sms.all())
	f.wake(t)
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
}

// The answer of a provider determines how long all workers pause; after that, one push is tried first.
func TestWorkers_SharePauses(t *testing.T) {
	t.Parallel()
	for name, speed := range map[string]pace.Speed{"any speed": {}, "limited": pace.PerSpan(50, time.Second, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupWorkers(t, 2, speed)
			const wait = 5 * time.Second
			var asked atomic.Pointer[time.Time]
			f.sms.answer = func(context.Context, push.Push, int) channel.Result {
				now := time.Now()
				if asked.CompareAndSwap(nil, &now) {
					return channel.Result{Outcome: push.Refused, RetryAfter: wait, Error: "busy"}
				}
				return channel.Result{Outcome: push.Delivered}
			}
			f.due(t, "sms", "first")
			eventually(t, "the provider asks for a pause", func() bool { return asked.Load() != nil })
			eventually(t, "both workers know of it", func() bool {
				return f.holds(0) && f.holds(1)
			})
			f.due(t, "sms", names("r", 20)...)
			eventually(t, "all wait, or the pause is over", func() bool { return f.waiting() >= 20 || time.Since(*asked.Load()) > wait })
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
	f := setupWorkers(t, 1, pace.Speed{})
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
	f.due(t, "sms", names("first", 10)...)
	eventually(t, "the breaker opens", func() bool { return f.holds(0) })
	waiting := f.due(t, "sms", names("r", 100)...)
	f.due(t, "log", names("r", 100)...)
	f.logSends(t, 100)
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
	eventually(t, "the channel works as ever", func() bool { return !f.holds(0) })
}

// A push whose recipient waits in a channel's queue expires in time.
func TestWorkers_QueuedPushExpires(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.PerSpan(1, time.Hour, 1))
	f.due(t, "sms", "first")
	eventually(t, "the first has the only send time of the hour", func() bool { return len(f.sms.all()) == 1 })
	at := thisSecond().Add(-time.Second)
	p := push.Push{Content: push.Content{Recipient: "late", Channel: "sms", Message: []byte(`{}`)}, ID: push.NewID(at, push.RecipientKey(f.tenant, "late")), Tenant: f.tenant, SendAt: at}
	p.RequestedSendAt, p.ExpiresAt = p.SendAt, time.Now().Add(time.Second)
	if _, err := f.store.Book(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is in the queue", func() bool { return f.waiting() == 1 })
	eventually(t, "it expires", func() bool {
		if _, err := f.store.Expire(t.Context(), push.Lanes(1), 10); err != nil {
			t.Fatal(err)
		}
		return f.read(t, p.ID).Status == push.Expired
	})
	if got := f.read(t, p.ID); got.Attempts != 0 {
		t.Errorf("%d attempts", got.Attempts)
	}
}

// Many recipients in the queue have nothing left to send. A permit that they do not use goes to the next.
func TestWorkers_PermitsAreNotWasted(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.PerSpan(1, time.Second, 1))
	canceled := f.bookAll(t, "sms", thisSecond().Add(-time.Minute), names("canceled", 100)...)
	eventually(t, "they are in the queue", func() bool { return f.waiting() > 80 })
	f.cancelAll(t)
	sent := len(f.sms.all())
	f.due(t, "sms", names("r", 3)...)
	eventually(t, "all are sent", func() bool { return len(f.sms.all()) >= sent+3 })
	if n := f.taken.Load(); n > int64(sent)+50 { // one for each recipient would be 103
		t.Errorf("%d send times were taken for %d pushes", n, sent+3)
	}
	for _, p := range canceled {
		if got := f.read(t, p.ID); got.Status == push.Scheduled {
			t.Errorf("%+v", got)
		}
	}
}

// cancelAll cancels all cancelable pushes.
func (f *workersBundle) cancelAll(t *testing.T) {
	t.Helper()
	page, err := f.store.List(t.Context(), f.tenant, push.Filter{}, push.Position{}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range page.Pushes {
		if _, err := f.store.Cancel(t.Context(), f.tenant, p.ID); err != nil && !errors.Is(err, push.ErrNotCancelable) {
			t.Fatal(err)
		}
	}
}

// A worker that stops leaves the recipients in its queues to other workers, and sends no more.
func TestWorkers_StoppedWorkerEmptiesItsQueues(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.PerSpan(1, time.Hour, 1))
	f.bookAll(t, "sms", thisSecond().Add(-10*time.Second), names("r", 5)...)
	eventually(t, "all wait but the one that may be sent, unless the answer of Redis to that was lost", func() bool { return f.waiting() >= 4 && f.waiting()+len(f.sms.all()) == 5 })
	f.stop()
	if n := f.waiting(); n != 0 {
		t.Errorf("%d wait in a worker that has stopped", n)
	}
}

// Without Redis, three workers together stay below the speed, and continue.
func TestWorkers_SpeedWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	f := setupWorkersOn(t, 3, pace.PerSpan(20, time.Second, 1), func() redisclient.Client {
		return testenv.RedisClient(t, server.URL, func(o *redisclient.Options) {
			o.DialTimeout, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = 200*time.Millisecond, -1, 1, true
		})
	})
	f.due(t, "sms", names("warm", 6)...)
	eventually(t, "it works with Redis", func() bool { return len(f.sms.all()) == 6 })
	rdb := testenv.RedisClient(t, server.URL)
	heard := func() []redis.Z { // last signs of life of workers, the oldest first
		workers, err := rdb.ZRangeWithScores(t.Context(), "sq:pace:workers", 0, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		return workers
	}
	eventually(t, "all workers are there", func() bool { return len(heard()) == 3 })
	// Each watch reads the number of workers. A worker that watches for the second time from now on has the answer of
	// the first, which counted all.
	for range 2 {
		last := heard()[2].Score
		eventually(t, "each has looked again", func() bool { return heard()[0].Score > last })
	}
	kill(t, server)
	began := time.Now() // the first are sent while others are booked
	f.due(t, "sms", names("r", 30)...)
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
	f := setupWorkers(t, 1, pace.Speed{})
	release := make(chan struct{})
	var handlers sync.WaitGroup
	defer func() { close(release); handlers.Wait() }()
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		<-release
		return channel.Result{Outcome: push.Delivered}
	}
	for i := range 30 {
		handlers.Go(func() { f.due(t, "sms", fmt.Sprint("r", i)) })
	}
	eventually(t, "the provider has what it may have", func() bool { return len(f.sms.all()) >= 7 })
	f.due(t, "log", "anna")
	eventually(t, "log is sent while sms hangs", func() bool { return len(f.all()) == 1 })
}

// Package delivery carries out one attempt after another: it claims a recipient's oldest due push, sends it through
// its channel, and records how that ended. [booking.ClaimState.Decide] decides what is due and what may be sent, under
// the recipient's lock, which the store takes.
package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Worker handles wake-ups. It is safe for concurrent use.
//
// A recipient that must wait holds no slot. It is delayed if the quota allows its next push in a moment, and queued if
// its channel cannot take a push yet. After an outage, when most recipients have several pushes that are due, nearly
// all of them wait most of the time.
type Worker struct {
	store     attempts
	cache     *quota.Cache
	channels  *channel.Set
	queues    *channelQueues
	outcomes  outcomes
	waker     waker
	log       *slog.Logger
	metrics   observer
	cfg       Config
	slots     chan struct{} // one element for each slot in use
	recording chan struct{} // one element for each attempt that is recorded, and has no slot any more
	claiming  chan struct{} // one element for each lane that takes slots, and claims for them

	mu       sync.Mutex
	lanes    map[push.Lane]*lane
	early    map[push.WakeUp]*delay // wake-ups whose time has not come
	delayed  map[delayKey]*delay
	limited  map[string][]push.Lane // by channel: in which more was due than it had slots for
	closed   bool
	handling sync.WaitGroup  // wake-ups
	attempts sync.WaitGroup  // that their handlers have begun
	looking  sync.WaitGroup  // early wake-ups, delayed recipients and permits, until they have been handled
	work     context.Context // of those; it ends when the worker closes
	close    context.CancelFunc
}

// Config is what a Worker has to know.
type Config struct {
	Policy      booking.Terms      // of tenants without a policy of their own
	Lease       time.Duration      // how long an attempt may take before it counts as lost
	Concurrency int                // attempts at the same time
	Pacer       pacer              // nil: this is the only worker, and no channel's speed is limited
	Lanes       func() []push.Lane // that this worker owns, whose recipients wait in its channels' queues; nil: none

	// Due reports whether something may be due in the lanes that this worker owns; nil: it may. While nothing is, the queues are not
	// fed.
	Due func() bool

	// Computing has turns at making messages that have the time of their sending in them; nil: there is always one.
	Computing *bulkhead.Computing[uuid.UUID]
}

// attempts is the part of the store that finds what is due, and begins and ends attempts.
type attempts interface {
	Due(ctx context.Context, o booking.DueOrder) (due []booking.Due, now time.Time, err error)
	ClaimAll(ctx context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error)
	Claim(ctx context.Context, o booking.ClaimOrder) (booking.Claim, error)
	Finish(ctx context.Context, f booking.Finish) (more bool, err error)
}

// waker has the lane of a recipient looked at when something becomes due, which is in so long. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// observer is told what happened, for the metrics.
type observer interface {
	// Attempted is told of every attempt that ended, whether it was the push's first, and how long after the promised
	// time it began.
	Attempted(channel, outcome string, first bool, late time.Duration)
	Unregistered(channel string)
	PutOff()
}

// delayKey is a delayed recipient, and the channel that a push of it was due for.
type delayKey struct {
	recipient int64
	channel   string
}

type delay struct {
	due   booking.Due // of a delayed recipient
	until time.Time
	timer *time.Timer
}

// New returns a worker on top of its parts.
func New(st attempts, cache *quota.Cache, channels *channel.Set, wakes waker, log *slog.Logger, metrics observer, cfg Config) *Worker {
	w := &Worker{
		store: st, cache: cache, channels: channels, queues: newChannelQueues(channels, cfg.Pacer, log, cfg.Concurrency), waker: wakes,
		log: log, metrics: metrics, cfg: cfg, slots: make(chan struct{}, cfg.Concurrency), recording: make(chan struct{}, mostRecording*cfg.Concurrency),
		claiming: make(chan struct{}, mostClaiming),
		lanes:    map[push.Lane]*lane{}, early: map[push.WakeUp]*delay{}, delayed: map[delayKey]*delay{}, limited: map[string][]push.Lane{},
	}
	w.work, w.close = context.WithCancel(context.Background())
	return w
}

// serve sends what is due for a recipient, one push after another, until nothing is left to do now. A recipient that must
// wait for less than [booking.Patience], or for a channel, is served again.
func (w *Worker) serve(d booking.Due, p *permit) {
	pause, err := w.pass(w.work, d, p)
	w.settle(d, pause, err)
	w.resume(d.Channel)
}

func (w *Worker) freeSlots(n int) {
	for range n {
		<-w.slots
	}
}

// settle has a recipient handled again after a pause, or after a failure.
func (w *Worker) settle(d booking.Due, pause time.Duration, err error) {
	if err != nil {
		if pause = time.Second; w.work.Err() == nil {
			w.log.Warn("a recipient was not handled; it is tried again", "error", err)
		}
	}
	if pause > 0 {
		w.delay(d, pause)
	}
}

// delay has a recipient handled after a pause, unless the worker is closed.
func (w *Worker) delay(d booking.Due, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	until := time.Now().Add(pause)
	key := delayKey{d.RecipientKey, d.Channel}
	if delayed := w.delayed[key]; delayed != nil {
		if until.Before(delayed.until) && delayed.timer.Stop() {
			delayed.until = until
			delayed.timer.Reset(pause)
		}
		return
	}
	w.looking.Add(1)
	w.delayed[key] = &delay{d, until, time.AfterFunc(pause, func() { w.handleDelayed(d) })}
}

func (w *Worker) handleDelayed(d booking.Due) {
	defer w.looking.Done()
	w.mu.Lock()
	delete(w.delayed, delayKey{d.RecipientKey, d.Channel})
	w.mu.Unlock()
	w.serve(d, &permit{})
}

// delayedIn lists the recipients of a lane that are delayed.
func (w *Worker) delayedIn(l push.Lane) (recipientKeys []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.delayed {
		if shard := push.Shard(key.recipient); shard >= l.First && shard <= l.Last {
			recipientKeys = append(recipientKeys, key.recipient)
		}
	}
	return recipientKeys
}

// usePermit offers a permit to the recipients in a queue, one after another, until one has used it.
func (w *Worker) usePermit(queue *channelQueue) {
	defer w.looking.Done()
	p := &permit{queue: queue}
	defer p.release()
	for p.queue != nil {
		d, ok := queue.next()
		if !ok {
			return
		}
		w.serve(d, p)
	}
}

// Run feeds the queues, and gives permits to the recipients in them, until ctx ends. Then it leaves all recipients that
// wait to other workers, and waits for the attempts under way.
func (w *Worker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, queue := range w.queues.all {
		running.Go(func() {
			queue.run(ctx, w.cfg.Pacer, func() {
				w.looking.Add(1)
				go w.usePermit(queue)
			})
		})
	}
	if w.cfg.Pacer != nil {
		running.Go(func() { _ = w.cfg.Pacer.Run(ctx, w.channels.Names(), w.queues.hold) }) // it never fails
	}
	if w.cfg.Lanes != nil {
		running.Go(func() {
			_ = loop.Loop{Name: "feed", Interval: feedInterval, Retry: feedPause, Log: w.log, Pass: w.feed}.Run(ctx)
		}) // nor does it
	}
	<-ctx.Done()
	running.Wait()
	w.closeAll()
	w.handling.Wait()
	w.attempts.Wait()
	w.looking.Wait()
	return nil
}

// closeAll closes the worker and its queues, and wakes other workers for the recipients that wait.
func (w *Worker) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.close()
	for _, d := range w.delayed {
		if d.timer.Stop() {
			w.looking.Done()
		}
		w.waker.Wake(d.due.RecipientKey, d.due.At, 0)
	}
	for wake, d := range w.early {
		if d.timer.Stop() {
			w.looking.Done()
		}
		w.waker.Wake(int64(wake.Lane.First), wake.At, time.Until(d.until))
	}
	for _, queue := range w.queues.all {
		for _, d := range queue.close() {
			w.waker.Wake(d.RecipientKey, d.At, 0)
		}
	}
}

// Channels calls each for every channel, with the number of recipients in its queue, how much longer it pauses because
// its provider fails or asked for a pause, and how many tenants are held there.
func (w *Worker) Channels(each func(channel string, waiting int, held time.Duration, tenants int)) {
	for _, queue := range w.queues.all {
		held, tenants := queue.held()
		each(queue.channel, queue.len(), held, tenants)
	}
}

// Waits reports whether the pushes of a channel have to wait in its queue. They may be overdue for that.
func (w *Worker) Waits(channel string) bool {
	queue := w.queues.byName[channel]
	return queue != nil && queue.blocked()
}

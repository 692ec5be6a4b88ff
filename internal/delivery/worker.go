// Package delivery makes the attempts: it claims a recipient's oldest due push, sends it through its channel, and
// records the result. [booking.ClaimState.Decide] decides what is due and what may be sent, under the recipient's lock,
// which the store takes.
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
	"github.com/sendquota/sendquota/internal/suppression"
)

// Worker handles wake-ups. It is safe for concurrent use.
//
// A recipient that must wait holds no slot. It is delayed if the quota allows its next push in a moment, and queued if
// its channel cannot take a push yet. After an outage, when most recipients have several due pushes, nearly all of them
// wait most of the time.
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
	recording chan struct{} // one element for each attempt that is being recorded, and has no slot any more
	claiming  chan struct{} // one element for each lane that takes slots, and claims for them

	mu         sync.Mutex
	lanes      map[push.Lane]*lane
	early      map[push.WakeUp]*delay // wake-ups before their time
	delayed    map[delayKey]*delay
	routes     routesSeen // by the loop that feeds the queues
	limited    limitedLanes
	closed     bool
	handling   sync.WaitGroup  // wake-ups
	attempts   sync.WaitGroup  // attempts that their handlers have begun
	processing sync.WaitGroup  // early wake-ups, delayed recipients and permits, until they have been handled
	work       context.Context // context of the above; it ends when the worker closes
	close      context.CancelFunc
}

// Config configures a Worker.
type Config struct {
	Policy      booking.Terms      // of tenants without a policy of their own
	Lease       time.Duration      // how long an attempt may take before it counts as lost
	Concurrency int                // concurrent attempts
	Pacer       pacer              // nil: this is the only worker, and no channel's speed is limited
	Lanes       func() []push.Lane // the lanes that this worker owns, whose recipients wait in its channels' queues; nil: none

	// Due reports whether pushes may be due in the lanes that this worker owns; nil: they may. While none are, the
	// queues are not fed.
	Due func() bool

	// Own finds the channels that tenants have made; nil: they have none.
	Own OwnChannels

	// Parked is called when a claim has parked a recipient's push because of a pause; nil: it is not called. It must not wait.
	Parked func(pause uuid.UUID, recipientKey int64)

	// Suppress stores that nothing is to be sent to an address any more; nil: no answer of a provider suppresses.
	Suppress func(ctx context.Context, e suppression.Entry) error

	// Computing limits concurrent rendering of messages that contain the time of their sending; nil: no limit.
	Computing *bulkhead.Computing[uuid.UUID]
}

// attempts is the part of the store that finds due pushes, and begins and ends attempts.
type attempts interface {
	finder
	ClaimAll(ctx context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error)
	Claim(ctx context.Context, o booking.ClaimOrder) (booking.Claim, error)
	Finish(ctx context.Context, f booking.Finish) (more bool, err error)
	PausedNow(ctx context.Context, p push.Push) (bool, error)
}

// finder is the part of the store that finds due pushes.
type finder interface {
	Due(ctx context.Context, o booking.DueOrder) (due []booking.Due, now time.Time, err error)
	OwnDue(ctx context.Context, o booking.OwnDueOrder) ([]booking.Due, error)
	OwnRoutes(ctx context.Context, o booking.OwnRoutesOrder) (due []string, last string, err error)
}

// waker wakes workers for the lane of a recipient at a time, which is in from now. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// observer counts metrics.
type observer interface {
	// Attempted counts a finished attempt. first reports whether it was the push's first attempt, and late how long
	// after the promised time it began.
	Attempted(channel, level, outcome string, first bool, late time.Duration)
	Unregistered(channel string)
	PutOff()
}

// New returns a worker.
func New(st attempts, cache *quota.Cache, channels *channel.Set, wakes waker, log *slog.Logger, metrics observer, cfg Config) *Worker {
	w := &Worker{
		store: st, cache: cache, channels: channels, queues: newChannelQueues(channels, cfg.Pacer, log, cfg.Concurrency), waker: wakes,
		log: log, metrics: metrics, cfg: cfg, slots: make(chan struct{}, cfg.Concurrency), recording: make(chan struct{}, maxRecording*cfg.Concurrency),
		claiming: make(chan struct{}, maxClaiming),
		lanes:    map[push.Lane]*lane{}, early: map[push.WakeUp]*delay{}, delayed: map[delayKey]*delay{}, limited: limitedLanes{lanes: map[string][]push.Lane{}},
	}
	w.work, w.close = context.WithCancel(context.Background())
	if cfg.Own != nil {
		own := newOwnQueues(cfg.Own, cfg.Concurrency)
		own.run = w.runQueue
		own.forget = func(q *channelQueue) {
			if cfg.Pacer != nil {
				cfg.Pacer.Forget(q.channel, q.pace())
			}
		}
		w.queues.own = own
	}
	return w
}

// serve sends a recipient's due pushes, one after another, until nothing is left to do now. A recipient that must wait
// for less than [booking.MaxWait], or for a channel, is served again.
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

// usePermit offers a permit to the recipients in a queue, one after another, until one has used it.
func (w *Worker) usePermit(queue *channelQueue) {
	defer w.processing.Done()
	p := &permit{queue: queue}
	defer p.release()
	for p.queue != nil {
		d, ok := queue.next()
		if !ok {
			return
		}
		p.level = d.Rank.Level()
		if w.serve(d, p); p.queue != nil {
			queue.correct(p.level)
		}
	}
}

// Run feeds the queues, and gives permits to the recipients in them, until ctx ends. Then it leaves all waiting
// recipients to other workers, and waits for the attempts in progress.
func (w *Worker) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, queue := range w.queues.all {
		running.Go(func() { w.runQueue(ctx, queue) })
	}
	if w.cfg.Pacer != nil {
		running.Go(func() { _ = w.cfg.Pacer.Run(ctx, w.queues.names(), w.queues.hold) }) // it never fails
	}
	if w.cfg.Lanes != nil {
		running.Go(func() {
			_ = loop.Loop{Name: "feed", Interval: feedInterval, Retry: feedPause, Log: w.log, Pass: w.feed}.Run(ctx)
		}) // nor does it
	}
	<-ctx.Done()
	running.Wait()
	w.queues.own.stop()
	w.closeAll()
	w.handling.Wait()
	w.attempts.Wait()
	w.processing.Wait()
	return nil
}

// runQueue gives permits to the recipients in a queue until ctx ends.
func (w *Worker) runQueue(ctx context.Context, q *channelQueue) {
	q.run(ctx, w.cfg.Pacer, func() {
		w.processing.Add(1)
		go w.usePermit(q)
	})
}

// closeAll closes the worker and its queues, and wakes other workers for the waiting recipients.
func (w *Worker) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.close()
	for _, d := range w.delayed {
		if d.timer.Stop() {
			w.processing.Done()
		}
		w.waker.Wake(d.due.RecipientKey, d.due.At, 0)
	}
	for wake, d := range w.early {
		if d.timer.Stop() {
			w.processing.Done()
		}
		w.waker.Wake(int64(wake.Lane.First), wake.At, time.Until(d.until))
	}
	for _, queue := range append(w.queues.own.list(), w.queues.all...) {
		for _, d := range queue.close() {
			w.waker.Wake(d.RecipientKey, d.At, 0)
		}
	}
}

// Channels calls each for every channel, with the number of recipients in its queue, the remaining pause because its
// provider fails or asked for a pause, and the number of tenants that are held there.
func (w *Worker) Channels(each func(channel string, waiting int, held time.Duration, tenants int)) {
	for _, queue := range w.queues.all {
		held, tenants := queue.held()
		each(queue.label(), queue.len(), held, tenants)
	}
	if w.queues.own == nil {
		return
	}
	waiting, tenants := 0, 0
	for _, queue := range w.queues.own.list() {
		_, held := queue.held()
		waiting, tenants = waiting+queue.len(), tenants+held
	}
	each(OwnLabel, waiting, 0, tenants)
}

// Backlogged reports whether the pushes of a route have to wait in its queue, and may be overdue for that reason. All pushes
// through channels of tenants do, and the owner of their lanes looks for them every second.
func (w *Worker) Backlogged(channel string) bool {
	if channel == booking.OwnRoute && w.queues.own != nil {
		return true
	}
	queue := w.queues.byName[channel]
	return queue != nil && queue.blocked()
}

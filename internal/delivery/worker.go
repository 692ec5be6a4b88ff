// Package delivery carries out one attempt after another: it claims a recipient's oldest due push, sends it through
// its channel, and records how that ended. [booking.ClaimState.Decide] decides what is due and what may be sent, under
// the recipient's lock, which the store takes.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Worker handles wake-ups. It is safe for concurrent use.
//
// A recipient that waits holds no slot. It is delayed if the quota allows its next push in a moment, and queued if
// its channel can not take a push yet. After an outage, when most recipients have several pushes that are due, nearly
// all of them wait most of the time.
type Worker struct {
	store    attempts
	cache    *quota.Cache
	channels *channel.Set
	queues   *channelQueues
	log      *slog.Logger
	metrics  observer
	cfg      Config
	handlers chan struct{} // one element for each handler at work

	mu      sync.Mutex
	delayed map[delayKey]*delay
	closed  bool
	left    []int64         // recipients for other workers, since this one is closed
	looking sync.WaitGroup  // delayed recipients and permits, until they have been handled
	work    context.Context // of those; it ends when the worker closes
	close   context.CancelFunc
}

// Config is what a Worker has to know.
type Config struct {
	Policy      quota.Policy
	Lease       time.Duration // how long an attempt may take before it counts as lost
	Concurrency int           // attempts at the same time
	Pacer       pacer         // nil: this is the only worker, and no channel's speed is limited
}

// attempts is the part of the store that begins and ends attempts, and leaves recipients to other workers.
type attempts interface {
	Claim(ctx context.Context, o booking.ClaimOrder) (booking.Claim, error)
	Finish(ctx context.Context, f booking.Finish) (more bool, err error)
	Unarm(ctx context.Context, recipientKeys []int64) error
}

// observer is told what happened, for the metrics.
type observer interface {
	// Attempted is told of every attempt that ended, whether it was the push's first, and how long after the promised
	// time it began.
	Attempted(channel, outcome string, first bool, late time.Duration)
	Unregistered(channel string)
	PutOff()
}

// delayKey is a delayed recipient, and the channel that its wake-up was for.
type delayKey struct {
	recipient int64
	channel   string
}

type delay struct {
	until time.Time
	timer *time.Timer
}

// New returns a worker on top of its parts.
func New(st attempts, cache *quota.Cache, channels *channel.Set, log *slog.Logger, metrics observer, cfg Config) *Worker {
	w := &Worker{
		store: st, cache: cache, channels: channels, queues: newChannelQueues(channels, cfg.Pacer, log, cfg.Concurrency),
		log: log, metrics: metrics, cfg: cfg, handlers: make(chan struct{}, cfg.Concurrency), delayed: map[delayKey]*delay{},
	}
	w.work, w.close = context.WithCancel(context.Background())
	return w
}

// Handle sends what is due for the recipient of a wake-up, one push after another, until nothing is left to do now. A
// recipient that must wait for less than [booking.Patience], or for its channel, is handled again without another
// wake-up. Handle fails only if Postgres could not be reached, or with [push.ComeAgain] if the wake-up has to come again.
func (w *Worker) Handle(ctx context.Context, wake push.WakeUp) error {
	queue := w.queues.byName[wake.Channel]
	switch {
	case queue == nil:
		return w.serve(ctx, wake, &permit{})
	case queue.tryPermit():
		p := &permit{queue: queue, anyChannel: true}
		defer p.release()
		return w.serve(ctx, wake, p)
	case queue.add(wake):
		return nil
	}
	return push.ComeAgain{In: time.Second} // the queue is closed: another worker handles it
}

// serve does what can be done for a recipient now, as one of the handlers.
func (w *Worker) serve(ctx context.Context, wake push.WakeUp, p *permit) error {
	w.handlers <- struct{}{}
	pause, err := w.pass(ctx, wake, p)
	<-w.handlers
	if err == nil && pause > 0 && !w.delay(wake, pause) {
		return push.ComeAgain{In: pause} // another worker handles it
	}
	return err
}

// delay has a recipient handled after a pause, unless the worker is closed.
func (w *Worker) delay(wake push.WakeUp, pause time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	until := time.Now().Add(pause)
	key := delayKey{wake.RecipientKey, wake.Channel}
	if d := w.delayed[key]; d != nil {
		if until.Before(d.until) && d.timer.Stop() {
			d.until = until
			d.timer.Reset(pause)
		}
		return true
	}
	w.looking.Add(1)
	w.delayed[key] = &delay{until, time.AfterFunc(pause, func() { w.handleDelayed(wake) })}
	return true
}

func (w *Worker) handleDelayed(wake push.WakeUp) {
	defer w.looking.Done()
	w.mu.Lock()
	delete(w.delayed, delayKey{wake.RecipientKey, wake.Channel})
	w.mu.Unlock()
	w.handleAgain(wake, w.Handle(w.work, wake))
}

// usePermit offers a permit to the recipients in a queue, one after another, until one has used it.
func (w *Worker) usePermit(queue *channelQueue) {
	defer w.looking.Done()
	p := &permit{queue: queue}
	defer p.release()
	for p.queue != nil {
		wake, ok := queue.next()
		if !ok {
			return
		}
		w.handleAgain(wake, w.serve(w.work, wake, p))
	}
}

// handleAgain delays a recipient that was not handled, as often as it takes. Once the worker is closed, another
// worker handles it.
func (w *Worker) handleAgain(wake push.WakeUp, err error) {
	if err == nil {
		return
	}
	pause := time.Second
	if early, ok := errors.AsType[push.ComeAgain](err); ok {
		pause = early.In // its wake-up is used up
	} else if w.work.Err() == nil {
		w.log.Warn("a recipient that waited was not handled; it is tried again", "error", err)
	}
	if !w.delay(wake, pause) {
		w.mu.Lock()
		w.left = append(w.left, wake.RecipientKey)
		w.mu.Unlock()
	}
}

// Run gives permits to the recipients in the queues until ctx ends. Then it leaves all recipients that wait to other
// workers, waits for the attempts under way, and leaves the rest of those recipients' pushes to other workers, too.
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
	<-ctx.Done()
	running.Wait()
	w.unarm(w.closeAll())
	w.close()
	w.looking.Wait()
	w.unarm(w.left)
	return nil
}

// unarm leaves recipients to other workers.
func (w *Worker) unarm(recipientKeys []int64) {
	if len(recipientKeys) == 0 {
		return
	}
	if err := w.store.Unarm(context.Background(), recipientKeys); err != nil {
		w.log.Warn("recipients that wait are armed again only when their lease ends", "recipients", len(recipientKeys), "error", err)
	}
}

// closeAll closes the worker and its queues, and returns the recipients that waited.
func (w *Worker) closeAll() (recipientKeys []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for key, d := range w.delayed {
		if d.timer.Stop() {
			recipientKeys = append(recipientKeys, key.recipient)
			w.looking.Done()
		}
	}
	for _, queue := range w.queues.all {
		recipientKeys = append(recipientKeys, queue.close()...)
	}
	return recipientKeys
}

// Busy lists the tenants of which at least so many recipients wait for a channel; 0: half as many as are sent in ten
// seconds, and a few thousand.
func (w *Worker) Busy(enough int) (sources []push.TenantChannel) {
	for _, q := range w.queues.all {
		for _, tenant := range q.tenantsWith(cmp.Or(enough, max(q.limit/24, shortestQueue/4))) {
			sources = append(sources, push.TenantChannel{Tenant: tenant, Channel: q.channel})
		}
	}
	return sources
}

// Channels calls each for every channel, with the number of recipients in its queue, and how much longer it pauses
// because its provider fails or asked for a pause.
func (w *Worker) Channels(each func(channel string, waiting int, held time.Duration)) {
	for _, queue := range w.queues.all {
		each(queue.channel, queue.len(), queue.held())
	}
}

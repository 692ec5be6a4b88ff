package schedule

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// dueStore lists up to limit pushes that have been due for longer than since, but for those of some sources.
type dueStore interface {
	Due(ctx context.Context, limit int, since time.Duration, without []push.Source) ([]push.WakeUp, error)
}

// Poller delivers without a queue. When Redis has not worked for a while, it asks Postgres what is due and has it
// handled in the same way as a wake-up. Whatever Redis says, it does so with what is overdue: a queue may work, and yet
// wake nobody.
type Poller struct {
	Store       dueStore
	Works       func(context.Context) error // asks whether Redis does what the queue needs
	Handle      func(context.Context, push.WakeUp) error
	Log         *slog.Logger
	Patience    time.Duration        // how long Redis may be away before polling begins
	Linger      time.Duration        // how long polling goes on when Redis is back: as long as a wake-up that it lost is believed to be there
	Overdue     time.Duration        // how long a push may be due before it is polled although Redis works
	Found       func(pushes int)     // counts those that were found overdue
	Concurrency int                  // wake-ups handled at the same time
	Busy        func() []push.Source // of which enough waits; nil: there are none

	away    time.Time // since when Redis does not answer; zero: it does
	back    time.Time // since when Redis answers again while polling goes on; zero: it does not
	polling atomic.Bool

	next time.Time // when what is overdue is worth another line in the log

	handlers sync.WaitGroup
	slots    chan struct{} // one element for each running handler
	mu       sync.Mutex
	inFlight map[polled]bool // what is being handled
}

// polled is a recipient, and the channel that one of its pushes is for: it may have to wait in line at one, and be sent
// through another.
type polled struct {
	recipient int64
	channel   string
}

// pollInterval is how often Postgres is asked.
const pollInterval = 500 * time.Millisecond

// Run polls until ctx ends, and then waits for running handlers.
func (p *Poller) Run(ctx context.Context) error {
	defer p.handlers.Wait()
	return loop.Loop{Name: "poll", Interval: pollInterval, Log: p.Log, Pass: p.Pass}.Run(ctx)
}

// Polling reports whether workers do without Redis for now.
func (p *Poller) Polling() bool { return p.polling.Load() }

// Pass has one portion of what is overdue handled or, if Redis has not answered for too long, of what is due. It does
// not wait for the handlers: one that hangs delays nobody else. It is never full: what is still due may be waiting for
// its window, so the next look is at the next tick.
func (p *Poller) Pass(ctx context.Context) (full bool, err error) {
	since := p.Overdue
	if p.givenUp(ctx) {
		since = 0
	}
	if p.slots == nil {
		p.slots, p.inFlight = make(chan struct{}, p.Concurrency), map[polled]bool{}
	}
	var without []push.Source
	if p.Busy != nil {
		without = p.Busy()
	}
	due, err := p.Store.Due(ctx, 10*p.Concurrency, since, without)
	if err != nil {
		return false, err
	}
	if since > 0 {
		p.note(ctx, len(due))
	}
	p.start(ctx, due)
	return false, nil
}

// note counts what was found overdue, and logs it now and then.
func (p *Poller) note(ctx context.Context, pushes int) {
	if pushes > 0 {
		p.Found(pushes)
	}
	if now := time.Now(); pushes > 0 && !now.Before(p.next) {
		p.next = now.Add(time.Minute)
		p.Log.WarnContext(ctx, "pushes are overdue although Redis works; they are looked for in Postgres", "pushes", pushes, "for_more_than", p.Overdue.String())
	}
}

// start starts handlers for what is due, one for a recipient at a channel and none for those in flight. While as many
// run as may, it waits for one of them, but no longer than until the next pass.
func (p *Poller) start(ctx context.Context, due []push.WakeUp) {
	patience, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	seen := map[polled]bool{}
	for _, w := range due {
		key := polled{w.RecipientKey, w.Channel}
		if seen[key] || !p.take(key) {
			continue
		}
		seen[key] = true
		select {
		case p.slots <- struct{}{}:
			p.handlers.Go(func() { p.handle(ctx, w) })
		case <-patience.Done():
			p.leave(key)
			return
		}
	}
}

func (p *Poller) handle(ctx context.Context, w push.WakeUp) {
	defer func() { p.leave(polled{w.RecipientKey, w.Channel}); <-p.slots }()
	if err := p.Handle(ctx, w); err != nil && ctx.Err() == nil {
		p.Log.WarnContext(ctx, "polled push not handled", "push", w.Push, "error", err)
	}
}

// take claims a recipient at a channel for one handler, unless another has it.
func (p *Poller) take(key polled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight[key] {
		return false
	}
	p.inFlight[key] = true
	return true
}

func (p *Poller) leave(key polled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inFlight, key)
}

// givenUp decides whether to do without Redis: once it has been away for too long, and until it has been back for so
// long that whatever it may have lost is armed again.
func (p *Poller) givenUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := p.Works(ctx)
	if err == nil {
		p.away = time.Time{}
		return p.lingers(ctx)
	}
	p.back = time.Time{}
	if p.away.IsZero() {
		p.away = time.Now()
	}
	if p.polling.Load() {
		return true
	}
	away := time.Since(p.away)
	if away < p.Patience {
		return false
	}
	p.polling.Store(true)
	p.Log.WarnContext(ctx, "Redis does not do what the queue needs; polling Postgres for what is due", "for", away.Round(time.Millisecond).String(), "error", err)
	return true
}

// lingers reports whether polling goes on although Redis answers.
func (p *Poller) lingers(ctx context.Context) bool {
	if !p.polling.Load() {
		return false
	}
	if p.back.IsZero() {
		p.back = time.Now()
		p.Log.InfoContext(ctx, "Redis is back; polling goes on until what it may have lost is armed again", "for", p.Linger.String())
	}
	if time.Since(p.back) < p.Linger {
		return true
	}
	p.back = time.Time{}
	p.polling.Store(false)
	p.Log.InfoContext(ctx, "polling ends")
	return false
}

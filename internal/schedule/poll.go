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
	Due(ctx context.Context, limit int, since time.Duration, without []push.TenantChannel) ([]push.WakeUp, error)
}

// Poller delivers without a queue. When Redis has not worked for a while, it asks Postgres what is due and has it
// handled in the same way as a wake-up. Whatever Redis says, it does so with what is overdue: a queue may work, and yet
// wake nobody.
type Poller struct {
	store     dueStore
	works     func(context.Context) error
	deliverer deliverer
	log       *slog.Logger
	found     func(pushes int)
	now       func() time.Time
	cfg       PollerConfig

	away    time.Time // since when Redis does not work; zero: it does
	back    time.Time // since when Redis works again while polling goes on; zero: it does not
	polling atomic.Bool
	next    time.Time // when pushes that are overdue are logged again

	handlers sync.WaitGroup
	running  chan struct{} // one element for each running handler
	inFlight sync.Map      // of polled: what is being handled
}

// PollerConfig is what a Poller has to know.
type PollerConfig struct {
	Patience time.Duration // how long Redis may be away before polling begins
	// ArmLease is how long a wake-up is believed to be in the queue. Polling goes on for so long when Redis is back,
	// and a push that has been due for longer is polled although Redis works.
	ArmLease    time.Duration
	Concurrency int // wake-ups handled at the same time; above 0
}

// deliverer handles wake-ups. Those that wait for a channel are not polled again.
type deliverer interface {
	waiting
	Handle(ctx context.Context, w push.WakeUp) error
}

// NewPoller returns a poller, which does nothing before Run. works asks whether Redis does what the queue needs, and
// found is told how many pushes were overdue although it does. now is the clock, usually time.Now.
func NewPoller(st dueStore, works func(context.Context) error, d deliverer, log *slog.Logger, found func(pushes int), now func() time.Time, cfg PollerConfig) *Poller {
	return &Poller{store: st, works: works, deliverer: d, log: log, found: found, now: now, cfg: cfg, running: make(chan struct{}, cfg.Concurrency)}
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
	return loop.Loop{Name: "poll", Interval: pollInterval, Log: p.log, Pass: p.Pass}.Run(ctx)
}

// Polling reports whether workers do without Redis for now.
func (p *Poller) Polling() bool { return p.polling.Load() }

// Pass has one portion of what is overdue handled or, if Redis has not answered for too long, of what is due. It does
// not wait for the handlers: one that hangs delays nobody else. It is never full: what is still due may be waiting for
// its window, so the next look is at the next tick.
func (p *Poller) Pass(ctx context.Context) (full bool, err error) {
	since := p.cfg.ArmLease
	if p.givenUp(ctx) {
		since = 0
	}
	due, err := p.store.Due(ctx, 10*p.cfg.Concurrency, since, p.deliverer.Busy(5*p.cfg.Concurrency))
	if err != nil {
		return false, err
	}
	if since > 0 && len(due) > 0 {
		p.note(ctx, len(due))
	}
	p.start(ctx, due)
	return false, nil
}

// note counts what was found overdue, and logs it now and then.
func (p *Poller) note(ctx context.Context, pushes int) {
	p.found(pushes)
	if now := p.now(); !now.Before(p.next) {
		p.next = now.Add(time.Minute)
		p.log.WarnContext(ctx, "pushes are overdue although Redis works; they are looked for in Postgres", "pushes", pushes, "for_more_than", p.cfg.ArmLease.String())
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
		if seen[key] {
			continue
		}
		if _, running := p.inFlight.LoadOrStore(key, nil); running {
			continue
		}
		seen[key] = true
		select {
		case p.running <- struct{}{}:
			p.handlers.Go(func() { p.handle(ctx, key, w) })
		case <-patience.Done():
			p.inFlight.Delete(key)
			return
		}
	}
}

func (p *Poller) handle(ctx context.Context, key polled, w push.WakeUp) {
	defer func() { p.inFlight.Delete(key); <-p.running }()
	if err := p.deliverer.Handle(ctx, w); err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "polled push not handled", "push", w.Push, "error", err)
	}
}

// givenUp decides whether to do without Redis: once it has been away for too long, and until it has been back for so
// long that whatever it may have lost is armed again.
func (p *Poller) givenUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := p.works(ctx)
	if err == nil {
		p.away = time.Time{}
		return p.lingers(ctx)
	}
	p.back = time.Time{}
	if p.away.IsZero() {
		p.away = p.now()
	}
	if p.polling.Load() {
		return true
	}
	away := p.now().Sub(p.away)
	if away < p.cfg.Patience {
		return false
	}
	p.polling.Store(true)
	p.log.WarnContext(ctx, "Redis does not do what the queue needs; polling Postgres for what is due", "for", away.Round(time.Millisecond).String(), "error", err)
	return true
}

// lingers reports whether polling goes on although Redis answers.
func (p *Poller) lingers(ctx context.Context) bool {
	if !p.polling.Load() {
		return false
	}
	if p.back.IsZero() {
		p.back = p.now()
		p.log.InfoContext(ctx, "Redis is back; polling goes on until what it may have lost is armed again", "for", p.cfg.ArmLease.String())
	}
	if p.now().Sub(p.back) < p.cfg.ArmLease {
		return true
	}
	p.back = time.Time{}
	p.polling.Store(false)
	p.log.InfoContext(ctx, "polling ends")
	return false
}

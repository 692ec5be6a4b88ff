package schedule

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// Poller delivers without a queue. When Redis has not worked for a while, this worker looks at the lanes that it owns,
// in the same way as after a wake-up.
type Poller struct {
	lanes     owner
	works     func(context.Context) error
	deliverer deliverer
	log       *slog.Logger
	now       func() time.Time
	cfg       PollerConfig

	away    time.Time // since when Redis does not work; zero: it does
	back    time.Time // since when Redis works again while polling goes on; zero: it does not
	polling atomic.Bool
	looking sync.WaitGroup
}

// PollerConfig is what a Poller has to know.
type PollerConfig struct {
	Patience time.Duration // how long Redis may be away before polling begins
	ArmLease time.Duration // how long polling goes on when Redis is back: until what it may have lost is armed again
}

// NewPoller returns a poller, which does nothing before Run. works asks whether Redis does what the queue needs. now is
// the clock, usually time.Now.
func NewPoller(lanes owner, works func(context.Context) error, d deliverer, log *slog.Logger, now func() time.Time, cfg PollerConfig) *Poller {
	return &Poller{lanes: lanes, works: works, deliverer: d, log: log, now: now, cfg: cfg}
}

// pollInterval is how often lanes are looked at.
const pollInterval = 500 * time.Millisecond

// Run polls until ctx ends, and then waits for the looks under way.
func (p *Poller) Run(ctx context.Context) error {
	defer p.looking.Wait()
	return loop.Loop{Name: "poll", Interval: pollInterval, Log: p.log, Pass: p.Pass}.Run(ctx)
}

// Polling reports whether workers do without Redis for now.
func (p *Poller) Polling() bool { return p.polling.Load() }

// Pass has what is due in the lanes sent, if Redis has not answered for too long. It does not wait for that, and is never
// full.
func (p *Poller) Pass(ctx context.Context) (full bool, err error) {
	if !p.givenUp(ctx) {
		return false, nil
	}
	for _, l := range p.lanes.Lanes() {
		p.looking.Go(func() { deliver(ctx, p.deliverer, p.log, l) })
	}
	return false, nil
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

package upkeep

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// Poller delivers without a queue. After Redis has been down for a while, this worker processes the lanes that it owns
// as if a wake-up had arrived for each.
type Poller struct {
	lanes     owner
	works     func(context.Context) error
	deliverer deliverer
	log       *slog.Logger
	now       func() time.Time
	cfg       PollerConfig

	away    time.Time // since when Redis is down; zero: it works
	back    time.Time // since when Redis works again while polling continues; zero: it does not
	polling atomic.Bool
	looking sync.WaitGroup
}

// PollerConfig configures a Poller.
type PollerConfig struct {
	Patience time.Duration // how long Redis may be down before polling begins
	ArmLease time.Duration // how long polling continues after Redis is back: until lost wake-ups are armed again
}

// NewPoller returns a poller, which does nothing before Run. works checks that Redis does what the queue needs. now is
// the clock, usually time.Now.
func NewPoller(lanes owner, works func(context.Context) error, d deliverer, log *slog.Logger, now func() time.Time, cfg PollerConfig) *Poller {
	return &Poller{lanes: lanes, works: works, deliverer: d, log: log, now: now, cfg: cfg}
}

// The lanes are processed every pollInterval.
const pollInterval = 500 * time.Millisecond

// Run polls until ctx ends, and then waits for the lanes in progress.
func (p *Poller) Run(ctx context.Context) error {
	defer p.looking.Wait()
	return loop.Loop{Name: "poll", Interval: pollInterval, Log: p.log, Pass: p.Pass}.Run(ctx)
}

// Polling reports whether this worker does without Redis for now.
func (p *Poller) Polling() bool { return p.polling.Load() }

// Pass starts the delivery of due pushes in the owned lanes if Redis has been down for too long. It does not wait for
// them, and is never full.
func (p *Poller) Pass(ctx context.Context) (full bool, err error) {
	if !p.givenUp(ctx) {
		return false, nil
	}
	for _, l := range p.lanes.Lanes() {
		p.looking.Go(func() { deliver(ctx, p.deliverer, p.log, l) })
	}
	return false, nil
}

// givenUp reports whether to poll: once Redis has been down for Patience, until it has been back for ArmLease.
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
	p.log.WarnContext(ctx, "Redis cannot serve the queue; polling Postgres for due pushes", "for", away.Round(time.Millisecond).String(), "error", err)
	return true
}

// lingers reports whether polling continues although Redis answers.
func (p *Poller) lingers(ctx context.Context) bool {
	if !p.polling.Load() {
		return false
	}
	if p.back.IsZero() {
		p.back = p.now()
		p.log.InfoContext(ctx, "Redis is back; polling continues until lost wake-ups are armed again", "for", p.cfg.ArmLease.String())
	}
	if p.now().Sub(p.back) < p.cfg.ArmLease {
		return true
	}
	p.back = time.Time{}
	p.polling.Store(false)
	p.log.InfoContext(ctx, "polling ended")
	return false
}

package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// A promoter arms one wake-up per partSize pushes, so that several workers share pushes that are due at the same time.
// It arms a lane again if a push there is late by more than overdue.
const (
	partSize = 256
	overdue  = time.Second
)

// aheadStore counts the pushes of lanes that become due within the horizon, by moment, and returns the oldest due push
// per channel. With an error, the result may cover only the first lanes.
type aheadStore interface {
	Ahead(ctx context.Context, lanes []push.CountedLane, horizon time.Duration) ([]push.Ahead, error)
}

// armer puts wake-ups into the queue.
type armer interface {
	Arm(ctx context.Context, wakeUps []push.WakeUp) error
}

// owner lists the lanes that this worker owns.
type owner interface{ Lanes() []push.Lane }

// deliverer sends the due pushes in the lane of a wake-up, and knows the channels whose pushes must wait in a queue.
type deliverer interface {
	Handle(ctx context.Context, w push.WakeUp) error
	Backlogged(channel string) bool
}

// Promoter puts wake-ups into the queue for pushes that are due soon in the lanes that this worker owns. Every worker
// runs one. It counts and arms the pushes of a moment once. If a wake-up was lost, the lane is armed again when its
// pushes are overdue.
type Promoter struct {
	store     aheadStore
	queue     armer
	lanes     owner
	deliverer deliverer
	log       *slog.Logger
	found     func(lanes int)
	cfg       PromoterConfig

	counted    map[push.Lane]time.Time // until when due pushes are armed
	failed     bool                    // arming failed: wake-ups armed before may be lost as well
	next       time.Time               // when overdue lanes are logged again
	delivering sync.WaitGroup
}

// PromoterConfig configures a Promoter. Both times are above 0.
type PromoterConfig struct {
	Horizon time.Duration // how long before its send time a push is armed
	// ArmLease bounds how long a push may be overdue although it was armed. After that, this worker processes the lane
	// without a wake-up, because the queue may accept wake-ups and not deliver them.
	ArmLease time.Duration
}

// NewPromoter returns a promoter, which does nothing before Run. found receives the number of lanes that were overdue
// for longer than ArmLease.
func NewPromoter(st aheadStore, queue armer, lanes owner, d deliverer, log *slog.Logger, found func(lanes int), cfg PromoterConfig) *Promoter {
	return &Promoter{store: st, queue: queue, lanes: lanes, deliverer: d, log: log, found: found, cfg: cfg, counted: map[push.Lane]time.Time{}}
}

// Run promotes every second until ctx ends.
func (p *Promoter) Run(ctx context.Context) error {
	defer p.delivering.Wait()
	return loop.Loop{Name: "promote", Interval: time.Second, Log: p.log, Pass: p.Pass}.Run(ctx)
}

// Pass counts and arms each lane once. It is never full.
func (p *Promoter) Pass(ctx context.Context) (full bool, err error) {
	lanes := p.lanes.Lanes()
	maps.DeleteFunc(p.counted, func(l push.Lane, _ time.Time) bool { return !slices.Contains(lanes, l) })
	if p.failed && len(lanes) > 0 {
		if err := p.queue.Arm(ctx, []push.WakeUp{{Lane: lanes[0], At: time.Now()}}); err != nil {
			return false, err
		}
		p.failed = false
		clear(p.counted)
	}
	var errs []error
	for _, counted := range p.together(lanes) {
		ahead, err := p.store.Ahead(ctx, counted, p.cfg.Horizon)
		errs = append(errs, err)
		for i, a := range ahead {
			errs = append(errs, p.promote(ctx, counted[i].Lane, a, err == nil))
		}
	}
	return false, errors.Join(errs...)
}

// together groups lanes into queries. A lane with much left to count gets a query of its own, because it may take long.
func (p *Promoter) together(lanes []push.Lane) (queries [][]push.CountedLane) {
	var nearly []push.CountedLane
	for _, l := range lanes {
		counted := push.CountedLane{Lane: l, Until: p.counted[l]}
		if time.Until(counted.Until) < p.cfg.Horizon/2 {
			queries = append(queries, []push.CountedLane{counted})
		} else {
			nearly = append(nearly, counted)
		}
	}
	if len(nearly) > 0 {
		queries = append(queries, nearly)
	}
	return queries
}

// promote arms the due pushes of a lane, if all of them were counted. If arming fails, the next pass counts them again.
func (p *Promoter) promote(ctx context.Context, l push.Lane, ahead push.Ahead, counted bool) error {
	if late := p.late(ahead); late > p.cfg.ArmLease {
		p.sweep(ctx, l, late)
	}
	wakeUps := p.wakeUps(l, ahead)
	if len(wakeUps) > 0 {
		if err := p.queue.Arm(ctx, wakeUps); err != nil {
			p.failed = true
			return err
		}
		failpoint.Hit(failpoint.PromoteArmed)
	}
	if !counted {
		return nil
	}
	p.counted[l] = ahead.Until
	if len(wakeUps) > 0 {
		failpoint.Hit(failpoint.PromoteDone)
	}
	return nil
}

// wakeUps returns the wake-ups for the counted moments, and one for now if a push is overdue, so that the lane is
// processed.
func (p *Promoter) wakeUps(l push.Lane, ahead push.Ahead) (wakeUps []push.WakeUp) {
	if late := p.late(ahead); late > overdue {
		wakeUps = append(wakeUps, push.WakeUp{Lane: l, At: ahead.Now.Add(-late), Part: int(ahead.Now.Unix())}) // new each second: the last wake-up may be lost
	}
	for _, m := range ahead.Moments {
		for part := range (m.Pushes + partSize - 1) / partSize {
			wakeUps = append(wakeUps, push.WakeUp{Lane: l, At: m.At, Part: part, In: m.At.Sub(ahead.Now)})
		}
	}
	return wakeUps
}

// late returns how long the oldest push has been due, without pushes that wait for their channel.
func (p *Promoter) late(ahead push.Ahead) (late time.Duration) {
	for channel, since := range ahead.Oldest {
		if !p.deliverer.Backlogged(channel) {
			late = max(late, ahead.Now.Sub(since))
		}
	}
	return late
}

// sweep sends the overdue pushes of a lane without the queue.
func (p *Promoter) sweep(ctx context.Context, l push.Lane, late time.Duration) {
	p.found(1)
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(time.Minute)
		p.log.WarnContext(ctx, "overdue pushes were queued but not delivered; sweeping the lane directly", "lane", l.String(), "for", late.Round(time.Millisecond).String())
	}
	p.delivering.Go(func() { deliver(ctx, p.deliverer, p.log, l) })
}

// deliver sends the due pushes of a lane without a wake-up.
func deliver(ctx context.Context, d deliverer, log *slog.Logger, l push.Lane) {
	if err := d.Handle(ctx, push.WakeUp{Lane: l}); err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "could not process a lane; it will be retried", "lane", l.String(), "error", err)
	}
}

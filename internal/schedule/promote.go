package schedule

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

// A promoter arms one wake-up for so many pushes, so that several workers share what is due at the same time. A lane in
// which something has been due for longer than overdue is armed again.
const (
	partSize = 256
	overdue  = time.Second
)

// aheadStore counts what becomes due in each of some lanes within the horizon, and says what is due already. With an error, it
// may have answered for some.
type aheadStore interface {
	Ahead(ctx context.Context, lanes []push.CountedLane, horizon time.Duration) ([]push.Ahead, error)
}

// armer puts wake-ups into the queue.
type armer interface {
	Arm(ctx context.Context, wakeUps []push.WakeUp) error
}

// owner lists the lanes that this worker looks after.
type owner interface{ Lanes() []push.Lane }

// deliverer sends what is due in the lane of a wake-up, and knows the channels whose pushes have to wait in a queue.
type deliverer interface {
	Handle(ctx context.Context, w push.WakeUp) error
	Waits(channel string) bool
}

// Promoter puts wake-ups into the queue for what is due soon in the lanes that this worker owns. Every worker runs one.
// What becomes due at one moment is counted, and armed, once; what was lost since is armed again when it is overdue.
type Promoter struct {
	store     aheadStore
	queue     armer
	lanes     owner
	deliverer deliverer
	log       *slog.Logger
	found     func(lanes int)
	cfg       PromoterConfig

	counted map[push.Lane]time.Time // until when what becomes due is armed
	failed  bool                    // the queue: what was armed before may be lost as well
	next    time.Time               // when overdue lanes are logged again
	looking sync.WaitGroup
}

// PromoterConfig is what a Promoter has to know. Both times are above 0.
type PromoterConfig struct {
	Horizon time.Duration // how long before its time a push is armed
	// ArmLease is for how long something may be due although the queue was told of it: then this worker looks at the
	// lane without having been woken, for the queue may work and yet wake nobody.
	ArmLease time.Duration
}

// NewPromoter returns a promoter, which does nothing before Run. found is told how many lanes were overdue for longer
// than ArmLease.
func NewPromoter(st aheadStore, queue armer, lanes owner, d deliverer, log *slog.Logger, found func(lanes int), cfg PromoterConfig) *Promoter {
	return &Promoter{store: st, queue: queue, lanes: lanes, deliverer: d, log: log, found: found, cfg: cfg, counted: map[push.Lane]time.Time{}}
}

// Run promotes every second until ctx ends.
func (p *Promoter) Run(ctx context.Context) error {
	defer p.looking.Wait()
	return loop.Loop{Name: "promote", Interval: time.Second, Log: p.log, Pass: p.Pass}.Run(ctx)
}

// Pass looks at each lane once. It is never full.
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

// together divides lanes into those that are counted in one question. One of which much is left to count has a question of its own:
// that may take long.
func (p *Promoter) together(lanes []push.Lane) (questions [][]push.CountedLane) {
	var nearly []push.CountedLane
	for _, l := range lanes {
		counted := push.CountedLane{Lane: l, Until: p.counted[l]}
		if time.Until(counted.Until) < p.cfg.Horizon/2 {
			questions = append(questions, []push.CountedLane{counted})
		} else {
			nearly = append(nearly, counted)
		}
	}
	if len(nearly) > 0 {
		questions = append(questions, nearly)
	}
	return questions
}

// promote arms what becomes due in a lane, if all of that was counted. What could not be armed is counted again in the next pass.
func (p *Promoter) promote(ctx context.Context, l push.Lane, ahead push.Ahead, counted bool) error {
	if late := p.late(ahead); late > p.cfg.ArmLease {
		p.look(ctx, l, late)
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

// wakeUps are those for what becomes due, and one for now if something is overdue: from then on the lane is looked at.
func (p *Promoter) wakeUps(l push.Lane, ahead push.Ahead) (wakeUps []push.WakeUp) {
	if late := p.late(ahead); late > overdue {
		wakeUps = append(wakeUps, push.WakeUp{Lane: l, At: ahead.Now.Add(-late), Part: int(ahead.Now.Unix())}) // new each second: the last may be lost
	}
	for _, m := range ahead.Moments {
		for part := range (m.Pushes + partSize - 1) / partSize {
			wakeUps = append(wakeUps, push.WakeUp{Lane: l, At: m.At, Part: part, In: m.At.Sub(ahead.Now)})
		}
	}
	return wakeUps
}

// late is for how long a push has been due that does not wait for its channel.
func (p *Promoter) late(ahead push.Ahead) (late time.Duration) {
	for channel, since := range ahead.Oldest {
		if !p.deliverer.Waits(channel) {
			late = max(late, ahead.Now.Sub(since))
		}
	}
	return late
}

// look has this worker send what is overdue in a lane.
func (p *Promoter) look(ctx context.Context, l push.Lane, late time.Duration) {
	p.found(1)
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(time.Minute)
		p.log.WarnContext(ctx, "pushes are overdue although the queue was told of them; the lane is looked at without it", "lane", l.String(), "for", late.Round(time.Millisecond).String())
	}
	p.looking.Go(func() { deliver(ctx, p.deliverer, p.log, l) })
}

// deliver sends what is due in a lane, without having been woken.
func deliver(ctx context.Context, d deliverer, log *slog.Logger, l push.Lane) {
	if err := d.Handle(ctx, push.WakeUp{Lane: l}); err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "a lane was not looked at", "lane", l.String(), "error", err)
	}
}

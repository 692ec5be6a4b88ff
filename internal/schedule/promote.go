package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// promoteStore has up to limit pushes armed that are due within the horizon, but for those of some sources, and notes
// for the lease that they are.
type promoteStore interface {
	Promote(ctx context.Context, horizon, lease time.Duration, limit int, without []push.Source, arm func([]push.WakeUp) error) (int, error)
}

// Promoter puts the wake-ups of pushes that are due soon into the queue. Every worker runs one; a push is armed by one
// of them.
type Promoter struct {
	store   promoteStore
	queue   armer
	waiting waiting
	log     *slog.Logger
	cfg     PromoterConfig
}

// PromoterConfig is what a Promoter has to know. Both times are above 0.
type PromoterConfig struct {
	Horizon  time.Duration // how long before its time a push is armed
	ArmLease time.Duration // how long a wake-up is believed to be in the queue; if Redis forgets it, it is armed again then
}

// waiting lists the tenants of which so many pushes wait for a channel that more of them would be woken in vain; enough
// is how many, and 0 as many as last for several seconds.
type waiting interface {
	Busy(enough int) []push.Source
}

// NewPromoter returns a promoter, which does nothing before Run.
func NewPromoter(st promoteStore, queue armer, w waiting, log *slog.Logger, cfg PromoterConfig) *Promoter {
	return &Promoter{store: st, queue: queue, waiting: w, log: log, cfg: cfg}
}

// Run promotes every second until ctx ends.
func (p *Promoter) Run(ctx context.Context) error {
	return loop.Loop{Name: "promote", Interval: time.Second, Log: p.log, Pass: p.Pass}.Run(ctx)
}

// Pass arms one portion of what is due within the horizon.
func (p *Promoter) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	n, err := p.store.Promote(ctx, p.cfg.Horizon, p.cfg.ArmLease, portion, p.waiting.Busy(0), func(w []push.WakeUp) error {
		return p.queue.Arm(ctx, w)
	})
	if n > 0 {
		failpoint.Hit(failpoint.PromoteDone)
	}
	return n == portion, err
}

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
	Store   promoteStore
	Queue   armer
	Log     *slog.Logger
	Horizon time.Duration // how long before its time a push is armed
	Lease   time.Duration // how long a wake-up is believed to be in the queue; if Redis forgets it, it is armed again then

	// Busy lists the tenants of whom enough waits at a channel: what else of theirs is due there would be woken in
	// vain. Nil: there are none.
	Busy func() []push.Source
}

// Run promotes every second until ctx ends.
func (p *Promoter) Run(ctx context.Context) error {
	return loop.Loop{Name: "promote", Interval: time.Second, Log: p.Log, Pass: p.Pass}.Run(ctx)
}

// Pass arms one portion of what is due within the horizon.
func (p *Promoter) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	var without []push.Source
	if p.Busy != nil {
		without = p.Busy()
	}
	n, err := p.Store.Promote(ctx, p.Horizon, p.Lease, portion, without, func(w []push.WakeUp) error {
		return p.Queue.Arm(ctx, w)
	})
	if n > 0 {
		failpoint.Hit(failpoint.PromoteDone)
	}
	return n == portion, err
}

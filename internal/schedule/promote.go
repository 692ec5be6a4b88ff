package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// portion is how many pushes one pass of a loop handles: a pass with as many is full.
const portion = 500

// promoteStore has up to limit pushes armed that are due within the horizon, but for those of some sources, and notes
// for how long they are: the arm lease.
type promoteStore interface {
	Promote(ctx context.Context, horizon, armLease time.Duration, limit int, without []push.TenantChannel, arm func([]push.WakeUp) error) (int, error)
}

// waiting lists the tenants and channels for which at least enough recipients wait in this process already, so that it
// would be useless to wake more. 0 is enough for several seconds of sending.
type waiting interface {
	Busy(enough int) []push.TenantChannel
}

// PromoterConfig is what a promoter has to know. Both times are above 0.
type PromoterConfig struct {
	Horizon  time.Duration // how long before its time a push is armed
	ArmLease time.Duration // how long a wake-up is believed to be in the queue; if Redis forgets it, it is armed again then
}

// NewPromoter returns a loop that puts the wake-ups of pushes that are due soon into the queue, every second. Every
// worker runs one; a push is armed by one of them.
func NewPromoter(st promoteStore, queue armer, w waiting, log *slog.Logger, cfg PromoterConfig) loop.Loop {
	return loop.Loop{Name: "promote", Interval: time.Second, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		arm := func(wakeUps []push.WakeUp) error { return queue.Arm(ctx, wakeUps) }
		n, err := st.Promote(ctx, cfg.Horizon, cfg.ArmLease, portion, w.Busy(0), arm)
		if n > 0 {
			failpoint.Hit(failpoint.PromoteDone)
		}
		return n == portion, err
	}}
}

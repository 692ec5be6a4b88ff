package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// sweepStore removes up to limit events that ended longer ago than keep.
type sweepStore interface {
	SweepDeliveries(ctx context.Context, keep time.Duration, limit int) (n int, err error)
}

// Sweeper removes what webhooks were sent long ago.
type Sweeper struct {
	store sweepStore
	log   *slog.Logger
	keep  time.Duration
}

// NewSweeper returns a sweeper, which does nothing before Run. keep is how long an event is kept after its end.
func NewSweeper(st sweepStore, log *slog.Logger, keep time.Duration) *Sweeper {
	return &Sweeper{store: st, log: log, keep: keep}
}

// Run sweeps every ten seconds until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	return loop.Loop{Name: "sweep", Interval: 10 * time.Second, Log: s.log, Pass: s.Pass}.Run(ctx)
}

// Pass removes one portion.
func (s *Sweeper) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	n, err := s.store.SweepDeliveries(ctx, s.keep, portion)
	return n >= portion, err
}

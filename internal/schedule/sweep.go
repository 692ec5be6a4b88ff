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
	Store sweepStore
	Log   *slog.Logger
	Keep  time.Duration // how long it is kept
}

// Run sweeps every ten seconds until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	return loop.Loop{Name: "sweep", Interval: 10 * time.Second, Log: s.Log, Pass: s.Pass}.Run(ctx)
}

// Pass removes one portion.
func (s *Sweeper) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	n, err := s.Store.SweepDeliveries(ctx, s.Keep, portion)
	return n >= portion, err
}

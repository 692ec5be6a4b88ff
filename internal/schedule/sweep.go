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

// NewSweeper returns a loop that removes the events of webhooks that ended longer ago than keep, every ten seconds.
func NewSweeper(st sweepStore, log *slog.Logger, keep time.Duration) loop.Loop {
	return loop.Loop{Name: "sweep", Interval: 10 * time.Second, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		n, err := st.SweepDeliveries(ctx, keep, portion)
		return n >= portion, err
	}}
}

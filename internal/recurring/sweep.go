package recurring

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// sweepStore removes up to limit old records, and those of schedules that were deleted.
type sweepStore interface {
	SweepSchedules(ctx context.Context, keep time.Duration, limit int) (n int, err error)
}

// swept is how many records are removed in one transaction.
const swept = 1000

// NewSweeper returns a loop that removes what became of occurrences longer ago than kept, unless that is zero, and what is
// left of schedules that were deleted.
func NewSweeper(st sweepStore, log *slog.Logger, kept time.Duration) loop.Loop {
	return loop.Loop{Name: "sweep schedules", Interval: time.Minute, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		n, err := st.SweepSchedules(ctx, kept, swept)
		return n >= swept, err
	}}
}

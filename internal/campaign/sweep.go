package campaign

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// sweepStore removes up to limit lines that no campaign has.
type sweepStore interface {
	SweepUploads(ctx context.Context, limit int) (n int, err error)
}

// swept is how many lines are removed in one transaction.
const swept = 5000

// NewSweeper returns a loop that removes the lines of audiences that were replaced, that broke off while they arrived, and whose
// campaigns were deleted.
func NewSweeper(st sweepStore, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "sweep audiences", Interval: time.Minute, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		n, err := st.SweepUploads(ctx, swept)
		return n >= swept, err
	}}
}

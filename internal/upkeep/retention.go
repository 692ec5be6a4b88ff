package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// Retention configures how long records of one kind are kept, and how old ones are removed.
type Retention struct {
	Records string        // in the plural, for the log
	Keep    time.Duration // after their end; Remove documents the meaning of 0
	Every   time.Duration // between two passes, unless the first one was full
	Portion int           // maximum number of records that one pass removes

	// Remove removes up to limit records that ended longer ago than keep, and records that belong to nothing any more.
	// It returns their number.
	Remove func(ctx context.Context, keep time.Duration, limit int) (n int, err error)
}

// NewSweeper returns a loop that removes old records of one kind. Every worker runs one for each kind.
func NewSweeper(r Retention, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "remove old " + r.Records, Interval: r.Every, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		n, err := r.Remove(ctx, r.Keep, r.Portion)
		return n >= r.Portion, err
	}}
}

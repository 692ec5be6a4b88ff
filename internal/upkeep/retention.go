package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
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

// keepStore makes the partitions that will be needed, and drops partitions whose records have all expired.
type keepStore interface {
	MakePartitions(ctx context.Context) (made int, err error)
	DropPartitions(ctx context.Context, kept booking.Kept) (dropped []string, err error)
}

// NewKeeper returns a loop that makes and drops partitions, at the start and every hour: that is how old pushes are deleted. Every worker runs one. A pass
// changes nothing if another worker has done the work.
func NewKeeper(st keepStore, log *slog.Logger, kept booking.Kept) loop.Loop {
	return loop.Loop{Name: "keep", Interval: time.Hour, Log: log, Retry: 10 * time.Minute, Pass: func(ctx context.Context) (full bool, err error) {
		made, makeErr := st.MakePartitions(ctx)
		dropped, dropErr := st.DropPartitions(ctx, kept)
		if made > 0 {
			log.InfoContext(ctx, "partitions made ahead", "partitions", made)
		}
		if len(dropped) > 0 {
			log.InfoContext(ctx, "old partitions dropped", "partitions", dropped)
		}
		return false, errors.Join(makeErr, dropErr)
	}}
}

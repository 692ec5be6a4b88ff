package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
)

// keepStore makes the partitions that will be needed, and drops partitions whose records have all expired.
type keepStore interface {
	MakePartitions(ctx context.Context) (made int, err error)
	DropPartitions(ctx context.Context, kept booking.Kept) (dropped []string, err error)
}

// NewKeeper returns a loop that makes and drops partitions, at the start and every hour. Every worker runs one. A pass
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

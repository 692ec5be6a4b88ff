package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
)

// keepStore makes the partitions that will be needed, and drops those in which everything ended longer ago than it is kept.
type keepStore interface {
	MakePartitions(ctx context.Context) (made int, err error)
	DropPartitions(ctx context.Context, kept booking.Kept) (dropped []string, err error)
	SweepShadows(ctx context.Context, keep time.Duration, limit int) (n int, err error)
	SweepStats(ctx context.Context, keep time.Duration, limit int) (n int, err error)
}

// shadowsKept is how long the counts of shadow rules are kept.
const shadowsKept = 90 * 24 * time.Hour

// hoursKept is how long the numbers of hours are kept. Those of days are for ever.
const hoursKept = 401 * 24 * time.Hour

// NewKeeper returns a loop that makes and drops partitions, and removes old counts of shadow rules and old numbers of hours, at the
// start and every hour. Every worker runs one; what one of them does, the others find done.
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
		swept, sweepErr := st.SweepShadows(ctx, shadowsKept, 10*portion)
		hours, hoursErr := st.SweepStats(ctx, hoursKept, 10*portion)
		return swept == 10*portion || hours == 10*portion, errors.Join(makeErr, dropErr, sweepErr, hoursErr)
	}}
}

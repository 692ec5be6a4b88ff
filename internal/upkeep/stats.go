package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// Every foldPeriod, stat deltas are added up. Queries also count the deltas that are not added yet.
const foldPeriod = 2 * time.Second

// foldStore adds stat deltas to the stats, unless another worker is doing so.
type foldStore interface {
	FoldStatDeltas(ctx context.Context) (more bool, err error)
	Recount(ctx context.Context, every time.Duration) (counted bool, err error)
}

// Every recountPeriod, a worker searches a tenant to recount. A tenant is recounted when its last count is older
// than recountEvery.
const (
	recountPeriod = time.Minute
	recountEvery  = 7 * 24 * time.Hour
)

// NewRecounter returns a loop that recounts each tenant's waiting pushes once a week. This corrects the counts of
// pushes booked ahead, should they ever be wrong. Every worker runs one; one at a time works.
func NewRecounter(st foldStore, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "count what is booked ahead", Interval: recountPeriod, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		return st.Recount(ctx, recountEvery)
	}}
}

// NewFolder returns a loop that adds the deltas of transactions to the stats of hours and days. Every worker runs one;
// one at a time works.
func NewFolder(st foldStore, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "add up stat deltas", Interval: foldPeriod, Log: log, Pass: st.FoldStatDeltas}
}

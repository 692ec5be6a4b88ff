package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// foldPeriod is how often stat deltas are added up. Whoever asks for numbers counts those that are not added yet.
const foldPeriod = 2 * time.Second

// foldStore adds some of the stat deltas to the numbers, unless another worker is at that.
type foldStore interface {
	FoldStatDeltas(ctx context.Context) (more bool, err error)
	Recount(ctx context.Context, every time.Duration) (counted bool, err error)
}

// recountPeriod is how often it is looked for a tenant to count, and recountEvery is how long ago it was counted before then.
const (
	recountPeriod = time.Minute
	recountEvery  = 7 * 24 * time.Hour
)

// NewRecounter returns a loop that counts what waits of each tenant push by push, once a week: what is counted as booked ahead comes
// right by that, should it ever be wrong. Every worker runs one; one at a time works.
func NewRecounter(st foldStore, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "count what is booked ahead", Interval: recountPeriod, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		return st.Recount(ctx, recountEvery)
	}}
}

// NewFolder returns a loop that adds what transactions have counted to the numbers of hours and days. Every worker runs one; one at a
// time works.
func NewFolder(st foldStore, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "add up stat deltas", Interval: foldPeriod, Log: log, Pass: st.FoldStatDeltas}
}

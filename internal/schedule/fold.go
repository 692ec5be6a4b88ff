package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// foldPeriod is how often tallies are added up. Whoever asks for numbers counts those that are not added yet.
const foldPeriod = 2 * time.Second

// foldStore adds some of the tallies to the numbers, unless another worker is at that.
type foldStore interface {
	FoldTallies(ctx context.Context) (more bool, err error)
}

// NewFolder returns a loop that adds what transactions have counted to the numbers of hours and days. Every worker runs one; one at a
// time works.
func NewFolder(st foldStore, log *slog.Logger) loop.Loop {
	return loop.Loop{Name: "add up tallies", Interval: foldPeriod, Log: log, Pass: st.FoldTallies}
}

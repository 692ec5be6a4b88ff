package upkeep_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/upkeep"
)

// TestSweeper: a pass that removes a whole portion is followed by the next one at once.
func TestSweeper(t *testing.T) {
	t.Parallel()
	left := 25
	l := upkeep.NewSweeper(upkeep.Retention{Records: "lines", Keep: time.Hour, Every: time.Minute, Portion: 10, Remove: func(_ context.Context, keep time.Duration, limit int) (int, error) {
		if keep != time.Hour {
			t.Errorf("keep %s", keep)
		}
		n := min(limit, left)
		left -= n
		return n, nil
	}}, slog.New(slog.DiscardHandler))
	for _, want := range []bool{true, true, false} {
		if full, err := l.Pass(t.Context()); full != want || err != nil {
			t.Errorf("full %v, %v; %d are left", full, err, left)
		}
	}
}

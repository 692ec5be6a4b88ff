package campaign

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/loop"
)

// keeperStore removes up to limit recipients of campaigns that ended longer ago than keep.
type keeperStore interface {
	SweepCampaigns(ctx context.Context, keep time.Duration, limit int) (more bool, err error)
}

// removed is how many recipients are removed in one transaction.
const removed = 2000

// NewKeeper returns a loop that removes the recipients of campaigns that ended longer ago than kept, unless that is zero. The campaigns
// stay, with their counts.
func NewKeeper(st keeperStore, log *slog.Logger, kept time.Duration) loop.Loop {
	return loop.Loop{Name: "remove recipients of campaigns", Interval: time.Minute, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		return st.SweepCampaigns(ctx, kept, removed)
	}}
}

package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/quota"
)

// expireStore ends up to limit pushes that could not be sent in time.
type expireStore interface {
	Expire(ctx context.Context, limit int) ([]booking.Ended, error)
}

// Expirer ends pushes that could not be sent in time, whether or not anything wakes a worker for them.
type Expirer struct {
	Store   expireStore
	Cache   *quota.Cache
	Log     *slog.Logger
	Expired func(n int) // counts
}

// Run expires every second until ctx ends.
func (e *Expirer) Run(ctx context.Context) error {
	return loop.Loop{Name: "expire", Interval: time.Second, Log: e.Log, Pass: e.Pass}.Run(ctx)
}

// Pass ends one portion of the expired pushes.
func (e *Expirer) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	ended, err := e.Store.Expire(ctx, portion)
	for _, p := range ended {
		failpoint.Hit(failpoint.ExpireCommitted)
		e.Cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, p.ID)
		e.Log.InfoContext(ctx, "push expired", "push", p.ID, "request_id", p.RequestID)
	}
	e.Expired(len(ended))
	return len(ended) == portion, err
}

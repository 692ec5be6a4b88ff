package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// Expirer ends pushes that could not be sent in time, whether or not anything
// wakes a worker for them.
type Expirer struct {
	Store   *store.Store
	Cache   *quota.Cache
	Log     *slog.Logger
	Expired func(n int) // counts
}

// Run expires every second until ctx ends.
func (e *Expirer) Run(ctx context.Context) error {
	return every(ctx, time.Second, e.Log, "expire", e.Pass)
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

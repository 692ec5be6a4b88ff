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
	store   expireStore
	cache   *quota.Cache
	log     *slog.Logger
	expired func(pushes int)
}

// NewExpirer returns an expirer, which does nothing before Run. It tells expired how many pushes each pass has ended.
func NewExpirer(st expireStore, cache *quota.Cache, log *slog.Logger, expired func(pushes int)) *Expirer {
	return &Expirer{store: st, cache: cache, log: log, expired: expired}
}

// Run expires every second until ctx ends.
func (e *Expirer) Run(ctx context.Context) error {
	return loop.Loop{Name: "expire", Interval: time.Second, Log: e.log, Pass: e.Pass}.Run(ctx)
}

// Pass ends one portion of the expired pushes.
func (e *Expirer) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	ended, err := e.store.Expire(ctx, portion)
	for _, p := range ended {
		failpoint.Hit(failpoint.ExpireCommitted)
		e.cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, p.ID)
		e.log.InfoContext(ctx, "push expired", "push", p.ID, "request_id", p.RequestID)
	}
	e.expired(len(ended))
	return len(ended) == portion, err
}

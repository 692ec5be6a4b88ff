package schedule

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// reapStore lists up to limit lost attempts, and ends them.
type reapStore interface {
	Lost(ctx context.Context, limit int) ([]booking.Lost, error)
	Finish(ctx context.Context, f booking.Finish) (more bool, err error)
}

// Reaper ends attempts whose lease ran out, because their worker died or hung: their outcome is unknown.
type Reaper struct {
	store    reapStore
	cache    *quota.Cache
	log      *slog.Logger
	retry    func(channel string) push.Retry
	lost     func()
	interval time.Duration
}

// NewReaper returns a reaper, which does nothing before Run. retry says how a channel tries again, lost is told of each
// attempt that was ended, and interval is the time from one pass to the next.
func NewReaper(st reapStore, cache *quota.Cache, log *slog.Logger, retry func(channel string) push.Retry, lost func(), interval time.Duration) *Reaper {
	return &Reaper{store: st, cache: cache, log: log, retry: retry, lost: lost, interval: interval}
}

// Run reaps until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	return loop.Loop{Name: "reap", Interval: r.interval, Log: r.log, Pass: r.Pass}.Run(ctx)
}

// Pass ends one portion of the lost attempts. It is a finish like any other: a worker that was only slow, and finishes
// first, wins.
func (r *Reaper) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	lost, err := r.store.Lost(ctx, portion)
	if err != nil {
		return false, err
	}
	errs := make([]error, len(lost))
	var reaping sync.WaitGroup
	for i, l := range lost {
		reaping.Go(func() { errs[i] = r.reap(ctx, l) })
	}
	reaping.Wait()
	return len(lost) == portion, errors.Join(errs...)
}

func (r *Reaper) reap(ctx context.Context, l booking.Lost) error {
	failpoint.Hit(failpoint.ReapFound)
	f := l.Finish(r.retry(l.Push.Channel))
	if _, err := r.store.Finish(ctx, f); err != nil {
		return err
	}
	failpoint.Hit(failpoint.ReapDone)
	r.lost()
	r.log.WarnContext(ctx, "attempt lost", "push", l.Push.ID, "request_id", l.Push.RequestID, "attempt", l.Attempt, "status", f.Resolution.Status)
	if f.Resolution.Status == push.Failed {
		r.cache.Release(quota.Recipient{Tenant: l.Push.Tenant, ID: l.Push.Recipient}, l.Push.ID)
	}
	return nil
}

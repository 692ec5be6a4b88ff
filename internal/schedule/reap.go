package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// Reaper ends attempts whose lease ran out, because their worker died or hung:
// their outcome is unknown.
type Reaper struct {
	Store    *store.Store
	Cache    *quota.Cache
	Log      *slog.Logger
	Interval time.Duration
	Retry    func(channel string) push.Retry // how a channel tries again
	Lost     func()                          // counts
}

// Run reaps until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	return every(ctx, r.Interval, r.Log, "reap", r.Pass)
}

// Pass ends one portion of the lost attempts. It is a finish like any other: a
// worker that was only slow, and finishes first, wins.
func (r *Reaper) Pass(ctx context.Context) (full bool, err error) {
	const portion = 500
	lost, err := r.Store.Lost(ctx, portion)
	if err != nil {
		return false, err
	}
	errs := make([]error, len(lost))
	parallel(len(lost), func(i int) { errs[i] = r.reap(ctx, lost[i]) })
	return len(lost) == portion, errors.Join(errs...)
}

func (r *Reaper) reap(ctx context.Context, l store.Lost) error {
	failpoint.Hit(failpoint.ReapFound)
	const reason = "the attempt was lost: its worker did not report before the lease ended"
	resolution := r.Retry(l.Push.Channel).After(push.Attempt{Number: l.Attempt, Outcome: push.Unknown, Error: reason}, l.Left, l.Push.ID[:])
	_, err := r.Store.Finish(ctx, store.Finish{
		Push: l.Push.ID, Token: l.Token, Attempt: l.Attempt, Outcome: push.Unknown, Error: reason, Reaped: true, Resolution: resolution,
	})
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.ReapDone)
	r.Lost()
	r.Log.WarnContext(ctx, "attempt lost", "push", l.Push.ID, "request_id", l.Push.RequestID, "attempt", l.Attempt, "status", resolution.Status)
	if resolution.Status == push.Failed {
		r.Cache.Release(quota.Recipient{Tenant: l.Push.Tenant, ID: l.Push.Recipient}, l.Push.ID)
	}
	return nil
}

package upkeep

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

// reapStore lists up to limit lost attempts of lanes, and ends attempts.
type reapStore interface {
	Lost(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Lost, error)
	Finish(ctx context.Context, f booking.Finish) (more bool, err error)
}

// NewReaper returns a loop that ends attempts in this worker's lanes whose lease expired because their worker died or
// hung. The outcome of such an attempt is unknown. Each pass makes one short search, independent of the number of
// attempts in progress. retry returns a channel's retry rules, and lost is called for each attempt that was ended. A
// reaped attempt finishes like any other: if a slow worker finishes first, its result stands.
func NewReaper(st reapStore, lanes owner, cache *quota.Cache, wakes waker, log *slog.Logger, retry func(*push.Push) push.Retry, lost func(), interval time.Duration) loop.Loop {
	reap := func(ctx context.Context, l booking.Lost) error {
		failpoint.Hit(failpoint.ReapFound)
		f := l.Finish(retry(&l.Of))
		if _, err := st.Finish(ctx, f); err != nil {
			return err
		}
		failpoint.Hit(failpoint.ReapDone)
		lost()
		log.WarnContext(ctx, "attempt lost", "push", l.Of.ID, "request_id", l.Of.RequestID, "attempt", l.Number, "status", f.Resolution.Status)
		switch f.Resolution.Status {
		case push.Failed:
			cache.Release(quota.Recipient{Tenant: l.Of.Tenant, ID: l.Of.Recipient}, booking.Of(&l.Of))
		case push.Scheduled:
			in := f.Resolution.Delay
			wakes.Wake(push.RecipientKey(l.Of.Tenant, l.Of.Recipient), l.Of.ExpiresAt.Add(in-l.Left), in)
		}
		return nil
	}
	return loop.Loop{Name: "reap", Interval: interval, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		attempts, err := st.Lost(ctx, lanes.Lanes(), portion)
		errs := make([]error, len(attempts))
		var reaping sync.WaitGroup
		for i, l := range attempts {
			reaping.Go(func() { errs[i] = reap(ctx, l) })
		}
		reaping.Wait()
		return len(attempts) == portion, errors.Join(append(errs, err)...)
	}}
}

// waker wakes workers for the lane of a recipient at a time, which is in from now. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

package schedule

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// portion is how many pushes one pass of a loop handles: a pass with as many is full.
const portion = 500

// An expirer looks at what has become due since its last look, or a little before: a push may be booked for a minute ago,
// and its commit takes a while. Now and then it looks at all that is due.
const (
	lookBack  = time.Minute + 15*time.Second
	lookAtAll = 10 * time.Minute
)

// expireStore ends up to limit pushes of lanes that could not be sent in time, and says when the first of those that
// became due since a time expires.
type expireStore interface {
	NextExpiry(ctx context.Context, lanes []push.Lane, since time.Time) (next, now time.Time, err error)
	Expire(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Ended, error)
}

// NewExpirer returns a loop that ends pushes of this worker's lanes that could not be sent in time, whether or not
// anything wakes a worker for them. It looks every second, or more rarely beside a large backlog, and tells
// expired how many pushes each pass has ended.
func NewExpirer(st expireStore, lanes owner, cache *quota.Cache, log *slog.Logger, expired func(pushes int)) loop.Loop {
	var (
		spare sparing
		e     = expirer{store: st}
	)
	return loop.Loop{Name: "expire", Interval: time.Second, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		var ended []booking.Ended
		full, err = spare.look(func() (bool, error) {
			ended, err = e.look(ctx, lanes.Lanes())
			return len(ended) == portion, err
		})
		for _, p := range ended {
			failpoint.Hit(failpoint.ExpireCommitted)
			cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, quota.Booking{ID: p.ID, Kind: p.Kind})
			log.InfoContext(ctx, "push expired", "push", p.ID, "request_id", p.RequestID)
		}
		expired(len(ended))
		return full, err
	}}
}

// expirer remembers when the first of the pushes that it has seen expires: until then it need not look at these again.
// All times are by Postgres' clock. It is not safe for concurrent use.
type expirer struct {
	store    expireStore
	lanes    []push.Lane // that the rest is about
	all      time.Time   // when it looked at all that was due; zero: it has not
	looked   time.Time   // when it looked last
	next     time.Time   // when the first of what it saw expires; zero: it saw nothing
	expiring bool        // it has just ended some: there may be more
}

// look ends what has expired.
func (e *expirer) look(ctx context.Context, lanes []push.Lane) ([]booking.Ended, error) {
	if !slices.Equal(lanes, e.lanes) || e.looked.Sub(e.all) >= lookAtAll {
		*e = expirer{store: e.store, lanes: lanes}
	}
	if e.expiring {
		ended, err := e.store.Expire(ctx, lanes, portion)
		if err != nil || len(ended) > 0 {
			return ended, err
		}
		*e = expirer{store: e.store, lanes: lanes}
	}
	var since time.Time
	if !e.all.IsZero() {
		since = e.looked.Add(-lookBack)
	}
	next, now, err := e.store.NextExpiry(ctx, lanes, since)
	if err != nil {
		return nil, err
	}
	if e.looked = now; e.all.IsZero() {
		e.all = now
	}
	if e.next.IsZero() || !next.IsZero() && next.Before(e.next) {
		e.next = next
	}
	if e.next.IsZero() || e.next.After(now) {
		return nil, nil
	}
	e.expiring = true
	return e.store.Expire(ctx, lanes, portion)
}

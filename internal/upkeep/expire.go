package upkeep

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

// portion is the maximum number of pushes that one pass of a loop handles. A pass that reaches it is full.
const portion = 500

// An expirer searches pushes that became due since lookBack before its last search: a push may be booked for a minute
// ago, and its commit takes a while. Every searchAllEvery it searches all due pushes.
const (
	lookBack       = time.Minute + 15*time.Second
	searchAllEvery = 10 * time.Minute
)

// expireStore ends up to limit pushes that could not be sent in time. NextExpiry returns when the first push that
// became due after since expires, and Postgres' time.
type expireStore interface {
	NextExpiry(ctx context.Context, lanes []push.Lane, since time.Time) (next, now time.Time, err error)
	Expire(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Ended, error)
}

// NewExpirer returns a loop that ends pushes of this worker's lanes that could not be sent in time, even if no wake-up
// arrives for them. It runs every second, less often with a large backlog, and passes expired the number of pushes that
// each pass ended.
func NewExpirer(st expireStore, lanes owner, cache *quota.Cache, log *slog.Logger, expired func(pushes int)) loop.Loop {
	var (
		pause throttle
		e     = expirer{store: st}
	)
	return loop.Loop{Name: "expire", Interval: time.Second, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		var ended []booking.Ended
		full, err = pause.run(func() (bool, error) {
			ended, err = e.search(ctx, lanes.Lanes())
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

// expirer remembers the earliest expiry among the pushes that it has read, and does not read them again before that.
// All times are by Postgres' clock. It is not safe for concurrent use.
type expirer struct {
	store    expireStore
	lanes    []push.Lane // lanes that the other fields describe
	all      time.Time   // time of the last search of all due pushes; zero: none yet
	searched time.Time   // time of the last search
	next     time.Time   // earliest expiry found; zero: none
	expiring bool        // the last pass ended some; there may be more
}

// search ends the pushes that have expired.
func (e *expirer) search(ctx context.Context, lanes []push.Lane) ([]booking.Ended, error) {
	if !slices.Equal(lanes, e.lanes) || e.searched.Sub(e.all) >= searchAllEvery {
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
		since = e.searched.Add(-lookBack)
	}
	next, now, err := e.store.NextExpiry(ctx, lanes, since)
	if err != nil {
		return nil, err
	}
	if e.searched = now; e.all.IsZero() {
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

// throttle bounds the share of time that a loop searches for rare records among many. A search that takes long is
// followed by a longer pause. It is not safe for concurrent use.
type throttle struct{ next time.Time }

// The time between the starts of two searches is a multiple of the first one's duration. After a failure it is shorter:
// Postgres may have been away, and what was not found is late already.
const (
	gapFactor       = 50
	failedGapFactor = 2
	longestGap      = time.Minute
)

// run runs search, unless the pause is not over. After a full search, which found as much as can be handled at once,
// there is no pause.
func (s *throttle) run(search func() (full bool, err error)) (full bool, err error) {
	began := time.Now()
	if began.Before(s.next) {
		return false, nil
	}
	full, err = search()
	took := time.Since(began)
	switch {
	case err != nil:
		s.next = began.Add(failedGapFactor * took)
	case !full:
		s.next = began.Add(min(gapFactor*took, longestGap))
	}
	return full, err
}

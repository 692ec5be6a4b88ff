package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// portion is how many pushes one pass of a loop handles: a pass with as many is full.
const portion = 500

// expireStore ends up to limit pushes of lanes that could not be sent in time.
type expireStore interface {
	Expire(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Ended, error)
}

// NewExpirer returns a loop that ends pushes of this worker's lanes that could not be sent in time, whether or not
// anything wakes a worker for them. It looks every second, or more rarely beside a large backlog, and tells
// expired how many pushes each pass has ended.
func NewExpirer(st expireStore, lanes owner, cache *quota.Cache, log *slog.Logger, expired func(pushes int)) loop.Loop {
	var spare sparing
	return loop.Loop{Name: "expire", Interval: time.Second, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		var ended []booking.Ended
		full, err = spare.look(func() (bool, error) {
			ended, err = st.Expire(ctx, lanes.Lanes(), portion)
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

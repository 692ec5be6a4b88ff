package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/quota"
)

// resumeStore ends pauses and continues with the pushes that they have parked.
type resumeStore interface {
	EndPauses(ctx context.Context) ([]pause.Pause, error)
	Unpark(ctx context.Context) (due []booking.Unparked, more bool, err error)
	ExpirePaused(ctx context.Context) (ended []booking.Ended, more bool, err error)
}

// NewResumer returns a loop that ends pauses whose time is over, makes the parked pushes of ended pauses due again, and ends
// parked pushes that have expired. Every worker runs one; what one has locked, the others skip. expired receives the number
// of pushes that each pass ended.
func NewResumer(st resumeStore, cache *quota.Cache, wakes waker, log *slog.Logger, expired func(pushes int)) loop.Loop {
	return loop.Loop{Name: "resume", Interval: time.Second / 4, Log: log, Pass: func(ctx context.Context) (full bool, err error) {
		over, err := st.EndPauses(ctx)
		for _, p := range over {
			log.InfoContext(ctx, "pause ended: its time is over", "tenant", p.Tenant, "pause", p.ID, "scope", p.Scope)
		}
		if err != nil {
			return false, err
		}
		due, more, err := st.Unpark(ctx)
		if len(due) > 0 {
			failpoint.Hit(failpoint.PauseUnparked)
		}
		for _, d := range due {
			wakes.Wake(d.RecipientKey, d.At, d.In)
		}
		if err != nil {
			return false, err
		}
		ended, late, err := st.ExpirePaused(ctx)
		for _, p := range ended {
			cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, quota.Booking{ID: p.ID, Kind: p.Kind})
			log.InfoContext(ctx, "push expired while sending was paused", "push", p.ID, "request_id", p.RequestID)
		}
		expired(len(ended))
		return more || late, err
	}}
}

package delivery

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// ended follows up on a push that was deferred, or ended, instead of being sent.
func (w *Worker) ended(ctx context.Context, d booking.Due, c booking.Claim) {
	switch c.Outcome {
	case booking.Parked:
		w.log.DebugContext(ctx, "push parked: it is paused, or its campaign is paused or canceled", "push", c.Push.ID, "pause", c.Pause, "campaign", c.Push.Campaign)
		if c.Pause != uuid.Nil && w.cfg.Parked != nil {
			w.cfg.Parked(c.Pause, d.RecipientKey)
		}
		return
	case booking.Rerouted:
		w.log.DebugContext(ctx, "push waits for a channel of its tenant", "push", c.Push.ID, "tenant", c.Push.Tenant, "channel", c.Push.Channel)
		d.Channel = booking.RouteTo(c.Push.Tenant, c.Push.Channel)
		w.queues.own.add(d)
		return
	case booking.Orphaned:
		w.log.InfoContext(ctx, "push canceled: its tenant has deleted the channel", "push", c.Push.ID, "request_id", c.Push.RequestID)
		w.forgetBooking(c.Push)
		return
	case booking.Unwanted:
		w.log.InfoContext(ctx, "push canceled: its recipient has opted out", "push", c.Push.ID, "request_id", c.Push.RequestID)
		w.forgetBooking(c.Push)
		return
	case booking.SuppressedNow:
		w.log.InfoContext(ctx, "push failed: its address is suppressed", "push", c.Push.ID, "request_id", c.Push.RequestID)
		w.forgetBooking(c.Push)
		return
	case booking.Withdrawn:
		w.log.InfoContext(ctx, "push canceled: a bulk cancel met its last attempt", "push", c.Push.ID, "request_id", c.Push.RequestID)
		w.forgetBooking(c.Push)
		return
	case booking.TooLate:
		w.log.InfoContext(ctx, "push expired", "push", c.Push.ID, "request_id", c.Push.RequestID)
		w.forgetBooking(c.Push)
		return
	}
	w.metrics.PutOff()
	w.log.InfoContext(ctx, "push deferred by a rule", "push", c.Push.ID, "request_id", c.Push.RequestID, "rule", c.Push.Held.By, "since", c.Push.Held.Since, "until", c.Push.NextAt)
	w.waker.Wake(d.RecipientKey, c.Push.NextAt, c.Push.NextAt.Sub(c.Now))
}

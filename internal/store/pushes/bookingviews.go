package pushes

import (
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// shareable reports whether a draft can be decided in a transaction that tenants share: no other transaction holds a
// lock that the draft needs, and all bookings that it needs were read.
func (r *BookingRead) shareable(d booking.Draft) bool {
	r.View(d.Recipient())
	return !slices.Contains(r.Crowded, d.Recipient()) && (len(r.locked) == 0 ||
		!slices.Contains(r.locked, push.RecipientKey(d.Push.Tenant, d.Push.Recipient)) &&
			(d.Push.IdempotencyID == uuid.Nil || !slices.Contains(r.locked, requestLock(d.Push.IdempotencyID))))
}

// View returns the bookings of a recipient. Close returns the error if they cannot be read; nothing that is decided
// after that is written.
func (r *BookingRead) View(recipient quota.Recipient) *quota.View {
	i := r.at[recipient]
	for r.err == nil && r.read <= i {
		r.err = r.next()
	}
	return &r.spans[i].view
}

// Done drops a recipient's view after the last draft that needs it.
func (r *BookingRead) Done(recipient quota.Recipient) {
	bulkhead.Yield()
	sp := &r.spans[r.at[recipient]]
	if sp.uses--; sp.uses == 0 && !sp.keep {
		sp.view = quota.View{}
	}
}

// next reads the next portion.
func (r *BookingRead) next() error {
	asked := r.asked[0]
	r.asked = r.asked[1:]
	spans := r.spans[r.read : r.read+asked.spans]
	held := make([][]booking.Held, len(spans))
	for _, read := range asked.reads {
		if err := read.collect(r.Results, spans, held); err != nil {
			return err
		}
	}
	for n := range spans {
		sp := &spans[n]
		if !sp.known {
			sp.view.Timeline = quota.NewTimeline(bookingsOf(held[n]))
		}
		if sp.most > 0 && len(held[n]) > sp.most {
			r.Crowded = append(r.Crowded, sp.recipient)
		}
	}
	r.read += len(spans)
	return nil
}

// Close ends the exchange with Postgres, and returns the first error of the read.
func (r *BookingRead) Close() error {
	if err := r.Results.Close(); r.err == nil {
		r.err = err
	}
	return r.err
}

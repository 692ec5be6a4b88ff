package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// Availability lists the times when a push of a kind could be booked for a recipient, and the bookings and rules
// that block the other times.
type Availability struct {
	Slots
	Policy   quota.Policy    // the rules for the push
	Free     []quota.Span    // send times that a submit accepts now, in order
	Now      time.Time       // the current second when Free was computed
	Zone     *time.Location  // of the recipient, or else of the policy
	OptedOut booking.OptOuts // the opt-outs that match the push; with any, Free is empty
}

// maxAvailability is about the maximum number of bookings, and of blocked intervals, in an availability. It is lower
// than maxSlots, because an availability lists the bookings behind each interval.
const maxAvailability = 5000

// Availability returns when a push of a kind could be booked for a recipient in [from, until), two whole seconds. It
// ignores the push `without`, so that the answer shows where this push could move, or what its cancellation would free;
// uuid.Nil ignores none. An empty channel means the default channel. The tenant's caps are not considered. IT BOOKS
// NOTHING.
func (q *Quotas) Availability(ctx context.Context, r quota.Recipient, kind quota.Kind, from, until time.Time, without uuid.UUID) (Availability, error) {
	kind.Channel = cmp.Or(kind.Channel, q.cfg.firstOf(r.Tenant))
	permit := &permit{}
	defer permit.end()
	held, of, known, err := q.shown(ctx, permit, r, from, until)
	if err != nil {
		return Availability{}, fmt.Errorf("availability: %w", err)
	}
	held = slices.DeleteFunc(held, func(h booking.Held) bool { return h.ID == without })
	line := timelineOf(held, nil)
	held = slices.DeleteFunc(held, func(h booking.Held) bool { return h.At.Equal(until) })
	now := q.now().UTC()
	a := Availability{Policy: of.Policy(kind), Now: now.Truncate(quota.Second), Zone: zoneOf(of), OptedOut: of.Person.OptOuts.Of(kind)}
	a.Slots = slotsOf(held, a.Policy.Blocked(line, from, until), from, until, known, maxAvailability)
	if !a.OptedOut.Any() {
		a.Free = quota.FreeSpans(a.Blocked, q.open(now, from, cmp.Or(a.Next, until)))
	}
	return a, nil
}

// open returns the part of [from, until) that pushes may be scheduled in: not in the past, and not beyond the
// horizon.
func (q *Quotas) open(now, from, until time.Time) quota.Span {
	return quota.Span{From: later(from, now.Truncate(quota.Second)), Until: earliest(until, now.Add(q.cfg.MaxHorizon).Truncate(quota.Second).Add(quota.Second))}
}

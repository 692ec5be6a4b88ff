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

// Availability is when a push of a kind could be booked for a recipient, and what is in the way at other times.
type Availability struct {
	Slots
	Policy   quota.Policy    // the rules that hold for the push
	Free     []quota.Span    // the send times that a submit accepts now, by time
	Now      time.Time       // the second in which that was found
	Zone     *time.Location  // of the recipient, or else of the policy
	OptedOut booking.OptOuts // those that the push would go against: then nothing is free
}

// maxAvailability is about how many bookings, and how many blocked intervals, an availability has: it says of each what fills it.
const maxAvailability = 5000

// Availability returns when a push of a kind could be booked for a recipient in [from, until), two whole seconds, as if one of its
// pushes were not there: so it says where that could be moved to, and what a cancel would leave free. uuid.Nil: all are there. No
// channel: the default one. It does not look at the tenant's caps. IT BOOKS NOTHING.
func (s *Service) Availability(ctx context.Context, r quota.Recipient, kind quota.Kind, from, until time.Time, without uuid.UUID) (Availability, error) {
	kind.Channel = cmp.Or(kind.Channel, s.cfg.Channels[0])
	turn := &turn{}
	defer turn.end()
	held, of, known, err := s.shown(ctx, turn, r, from, until)
	if err != nil {
		return Availability{}, fmt.Errorf("availability: %w", err)
	}
	held = slices.DeleteFunc(held, func(h booking.Held) bool { return h.ID == without })
	line := timelineOf(held, nil)
	held = slices.DeleteFunc(held, func(h booking.Held) bool { return h.At.Equal(until) })
	now := s.now().UTC()
	a := Availability{Policy: of.Policy(kind), Now: now.Truncate(quota.Second), Zone: zoneOf(of), OptedOut: of.Person.OptOuts.Of(kind)}
	a.Slots = slotsOf(held, a.Policy.Blocked(line, from, until), from, until, known, maxAvailability)
	if !a.OptedOut.Any() {
		a.Free = quota.FreeSpans(a.Blocked, s.open(now, from, cmp.Or(a.Next, until)))
	}
	return a, nil
}

// open is the send times from one time on, and before another, that a push may be booked at if nothing is in the way.
func (s *Service) open(now, from, until time.Time) quota.Span {
	return quota.Span{From: later(from, now.Truncate(quota.Second)), Until: earliest(until, now.Add(s.cfg.MaxHorizon).Truncate(quota.Second).Add(quota.Second))}
}

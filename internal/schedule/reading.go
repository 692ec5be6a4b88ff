package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// reading is a recipient's quota data, read once for several answers.
type reading struct {
	who     quota.Recipient
	without map[uuid.UUID]bool // pushes to ignore: one that is to be moved, or members of a batch
	booked  []quota.Booking    // but count these members: they were booked before the refused one, and may have been rolled back since

	view     quota.View
	of       booking.Standing
	known    bool // the view and the terms are read
	cut      bool // there are too many bookings to read more
	deciders map[quota.Kind]*quota.Decider
	permit   *permit
}

// newReading returns an empty reading. The caller ends its permit.
func newReading(who quota.Recipient, without map[uuid.UUID]bool) *reading {
	return &reading{who: who, without: without, permit: &permit{}}
}

// add adds the members of a batch that are booked by now. booked grows with each member.
func (x *reading) add(booked []quota.Booking) {
	for _, b := range booked[len(x.booked):] {
		x.booked = append(x.booked, b)
		if x.known {
			x.view.Timeline = x.view.Insert(b)
			for _, decider := range x.deciders {
				decider.Changed()
			}
		}
	}
}

// decide decides about a push of a kind at a time. It reads bookings within times the policy's reach around that time,
// and widens this until it is enough.
func (q *Quotas) decide(ctx context.Context, x *reading, kind quota.Kind, at time.Time, times int) (quota.Decision, error) {
	for ; ; times *= 8 {
		if !x.known || !x.view.Shows(at, x.of.Terms.Reach()) {
			if err := q.read(ctx, x, at, times); err != nil {
				return quota.Decision{}, err
			}
		}
		d, complete := x.decider(kind, q.now()).Decide(x.view, at)
		if complete || x.cut {
			return d, nil
		}
		x.known = false
	}
}

// decider returns the decider for pushes of a kind.
func (x *reading) decider(kind quota.Kind, now time.Time) *quota.Decider {
	decider := x.deciders[kind]
	if decider == nil {
		if x.deciders == nil {
			x.deciders = map[quota.Kind]*quota.Decider{}
		}
		decider = &quota.Decider{Policy: x.of.Policy(kind), Now: now}
		x.deciders[kind] = decider
	}
	return decider
}

// read reads the bookings within times the policy's reach around a time, in addition to those read before.
func (q *Quotas) read(ctx context.Context, x *reading, at time.Time, times int) error {
	reach := q.terms(x.who.Tenant).Reach()
	if err := q.readView(ctx, x, quota.Around(at, reach, times)); err != nil || x.of.Terms.Reach() <= reach {
		return err
	}
	return q.readView(ctx, x, quota.Around(at, x.of.Terms.Reach(), times)) // the policy has changed
}

// readView reads the bookings of a view, in addition to those read before.
func (q *Quotas) readView(ctx context.Context, x *reading, view quota.View) error {
	if x.view.From.Before(view.From) && !x.view.From.IsZero() {
		view.From = x.view.From
	}
	if x.view.Until.After(view.Until) {
		view.Until = x.view.Until
	}
	line, complete, err := q.timeline(ctx, x, view.From, view.Until)
	if err != nil {
		return err
	}
	x.cut, view.Until = complete.Before(view.Until), complete
	view.Timeline = line
	for _, b := range x.booked {
		view.Timeline = view.Insert(b)
	}
	x.view, x.known, x.deciders = view, true, nil
	return nil
}

// timeline reads a recipient's bookings: in a shared query if they are few, which is the usual case.
func (q *Quotas) timeline(ctx context.Context, x *reading, from, until time.Time) (line quota.Timeline, complete time.Time, err error) {
	held, of, all, err := q.store.BookingsBetween(ctx, x.who, q.cfg.Policy, from, until)
	if err != nil {
		return line, until, err
	}
	if !all {
		if err := x.permit.take(ctx, q.crowds, x.who.Tenant); err != nil {
			return line, until, err
		}
		if x.of, err = q.store.Standing(ctx, x.who, q.cfg.Policy); err != nil {
			return line, until, err
		}
		return q.store.Timeline(ctx, x.who, from, until, x.without, !x.of.Terms.Plain())
	}
	x.of = of
	return timelineOf(held, x.without), until, nil
}

// timelineOf returns the timeline of bookings, without some pushes.
func timelineOf(held []booking.Held, without map[uuid.UUID]bool) quota.Timeline {
	bookings := make([]quota.Booking, 0, len(held))
	for _, h := range held {
		if !without[h.ID] {
			bookings = append(bookings, h.Booking)
		}
	}
	return quota.NewTimeline(bookings)
}

// explanations holds the readings for the refusals of a batch. It is empty until a member is refused.
type explanations struct {
	drafts []booking.Draft
	of     map[quota.Recipient]*reading
	batch  map[uuid.UUID]bool
	permit permit   // shared by all readings
	last   *reading // the reading returned last
	read   int      // number of bookings read, without the last reading
}

// recipient returns the reading of a recipient. It forgets all others once they hold very many bookings.
func (e *explanations) recipient(r quota.Recipient) *reading {
	if e.of == nil {
		e.of, e.batch = map[quota.Recipient]*reading{}, map[uuid.UUID]bool{}
		for _, d := range e.drafts {
			e.batch[d.Push.ID] = true
		}
	}
	if e.last != nil {
		e.read += e.last.view.Len()
	}
	x := e.of[r]
	if x == nil {
		if e.read > booking.MaxRead {
			clear(e.of)
			e.read = 0
		}
		x = &reading{who: r, without: e.batch, permit: &e.permit}
		e.of[r] = x
	}
	e.read -= x.view.Len()
	e.last = x
	return x
}

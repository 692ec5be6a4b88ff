package schedule

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Refusal is a push that finds no place in its recipient's quota: the reasons, and the nearest free times.
type Refusal struct {
	Recipient string
	SendAt    time.Time
	quota.Decision
}

// Error returns the reasons in one sentence.
func (r *Refusal) Error() string {
	reasons := make([]string, len(r.Violations))
	for i, v := range r.Violations {
		reasons[i] = reason(v, r.SendAt)
	}
	return r.Recipient + " " + strings.Join(reasons, ", and ")
}

func reason(v quota.Violation, at time.Time) string {
	switch {
	case v.Rule.Quiet:
		_, until, _ := v.Rule.Periods.Around(at)
		return fmt.Sprintf("is in quiet hours until %s (%s)", until.UTC().Format(time.RFC3339), v.Rule.Name)
	case v.Rule.Limit == 0:
		return fmt.Sprintf("may not be sent anything (rule %s has limit 0)", v.Rule.Name)
	}
	n, sends := max(0, v.Rule.Limit-v.Rule.Reserved), " sends"
	if n == 1 {
		sends = " send"
	}
	has := "already has " + strconv.Itoa(n) + sends // not by fmt, for speed: each refused submit builds one
	if v.Rule.Reserved > 0 {
		has += fmt.Sprintf(", and %d of the %d places are reserved for another category,", min(v.Rule.Reserved, v.Rule.Limit), v.Rule.Limit)
	}
	rule := " (rule " + v.Rule.Name + ")"
	if v.Rule.Periods != nil {
		from, until, _ := v.Rule.Periods.Around(at)
		return has + " from " + from.Format(time.RFC3339) + " until " + until.Format(time.RFC3339) + rule
	}
	return has + " within " + duration.Words(v.Rule.Window) + " of " + at.Format(time.RFC3339) + rule
}

// OptedOut is a push that its recipient has opted out of.
type OptedOut struct {
	Recipient string
	booking.OptOuts
}

// Error returns the opt-outs in one sentence.
func (o *OptedOut) Error() string {
	of := make([]string, 0, 2)
	for _, c := range o.Channels {
		of = append(of, "the channel "+c)
	}
	for _, c := range o.Categories {
		of = append(of, "the category "+c)
	}
	if o.All {
		of = []string{"all pushes"}
	}
	return o.Recipient + " has opted out of " + strings.Join(of, " and of ")
}

// noAddress returns the error of a push without an address whose recipient has none for the channel.
func (s *Service) noAddress(p *push.Push) error {
	to, _ := withoutAddress(s.cfg.Check(p.Channel, "", p.Message))
	return to.Err()
}

// withoutAddress separates the faults of an address from the others.
func withoutAddress(bad invalid.FieldErrors) (to, others invalid.FieldErrors) {
	for _, e := range bad {
		if e.Field == "to" {
			to = append(to, e)
		} else {
			others = append(others, e)
		}
	}
	return to, others
}

// bookingOf returns the booking of a push, as the cache holds it.
func (s *Service) bookingOf(p *push.Push) quota.Booking {
	return booking.Under(s.terms(p.Tenant), p)
}

// offer removes a next free time that is beyond the horizon.
func (s *Service) offer(d *quota.Decision) {
	if d.Next.After(s.now().Add(s.cfg.MaxHorizon).Truncate(quota.Second)) {
		d.Next = time.Time{}
	}
}

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

// refuse explains the refusal of a single push.
func (s *Service) refuse(ctx context.Context, p *push.Push, without map[uuid.UUID]bool, v booking.Decision) error {
	x := newReading(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, without)
	defer x.permit.end()
	return s.refusal(ctx, x, booking.KindOf(p), p.SendAt, v)
}

// refusal explains the refusal of a draft. The decision of Postgres under the lock stands. If it did not search far
// enough for the free times, they are searched again.
func (s *Service) refusal(ctx context.Context, x *reading, kind quota.Kind, at time.Time, v booking.Decision) error {
	d := v.Quota
	if !v.Complete {
		x.add(v.Granted)
		wide, err := s.decide(ctx, x, kind, at, 8)
		if err != nil {
			return fmt.Errorf("explain refusal: %w", err)
		}
		d.Next, d.Previous = wide.Next, wide.Previous
	}
	s.offer(&d)
	return &Refusal{Recipient: x.who.ID, SendAt: at, Decision: d}
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
func (s *Service) decide(ctx context.Context, x *reading, kind quota.Kind, at time.Time, times int) (quota.Decision, error) {
	for ; ; times *= 8 {
		if !x.known || !x.view.Shows(at, x.of.Terms.Reach()) {
			if err := s.read(ctx, x, at, times); err != nil {
				return quota.Decision{}, err
			}
		}
		d, complete := x.decider(kind, s.now()).Decide(x.view, at)
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
func (s *Service) read(ctx context.Context, x *reading, at time.Time, times int) error {
	reach := s.terms(x.who.Tenant).Reach()
	if err := s.readView(ctx, x, quota.Around(at, reach, times)); err != nil || x.of.Terms.Reach() <= reach {
		return err
	}
	return s.readView(ctx, x, quota.Around(at, x.of.Terms.Reach(), times)) // the policy has changed
}

// readView reads the bookings of a view, in addition to those read before.
func (s *Service) readView(ctx context.Context, x *reading, view quota.View) error {
	if x.view.From.Before(view.From) && !x.view.From.IsZero() {
		view.From = x.view.From
	}
	if x.view.Until.After(view.Until) {
		view.Until = x.view.Until
	}
	line, complete, err := s.timeline(ctx, x, view.From, view.Until)
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
func (s *Service) timeline(ctx context.Context, x *reading, from, until time.Time) (line quota.Timeline, complete time.Time, err error) {
	held, of, all, err := s.store.Glance(ctx, x.who, s.cfg.Policy, from, until)
	if err != nil {
		return line, until, err
	}
	if !all {
		if err := x.permit.take(ctx, s.crowds, x.who.Tenant); err != nil {
			return line, until, err
		}
		if x.of, err = s.store.Standing(ctx, x.who, s.cfg.Policy); err != nil {
			return line, until, err
		}
		return s.store.Timeline(ctx, x.who, from, until, x.without, !x.of.Terms.Plain())
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

// usage returns the usage of every rule around a push.
func (s *Service) usage(ctx context.Context, p *push.Push) ([]quota.Usage, error) {
	x := newReading(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, nil)
	defer x.permit.end()
	if err := s.read(ctx, x, p.SendAt, 1); err != nil {
		return nil, err
	}
	return x.of.Policy(booking.KindOf(p)).Usage(x.view.Timeline, p.SendAt), nil
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

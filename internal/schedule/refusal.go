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

// Refusal is a push that finds no place in its recipient's quota: why, and when else there is one.
type Refusal struct {
	Recipient string
	SendAt    time.Time
	quota.Decision
}

// Error says it in one sentence.
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
	has := "already has " + strconv.Itoa(n) + sends // not by fmt: each refused submit has one
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

// OptedOut is a push that its recipient does not want.
type OptedOut struct {
	Recipient string
	booking.OptOuts
}

// Error says it in one sentence.
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

// noAddress says that a push has no address, and its recipient none for the channel.
func (s *Service) noAddress(p *push.Push) error {
	to, _ := withoutAddress(s.cfg.Check(p.Channel, "", p.Message))
	return to.Err()
}

// withoutAddress takes what is wrong with an address apart from what else is wrong.
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

// bookingOf is the booking of a push, as the cache of its recipient has it.
func (s *Service) bookingOf(p *push.Push) quota.Booking {
	return booking.Under(s.terms(p.Tenant), p)
}

// offer takes away a next free time that no push can be scheduled for, because it is too far ahead.
func (s *Service) offer(d *quota.Decision) {
	if d.Next.After(s.now().Add(s.cfg.MaxHorizon).Truncate(quota.Second)) {
		d.Next = time.Time{}
	}
}

// reading is what was read of a recipient to answer about its quota. It is read once for several answers.
type reading struct {
	who     quota.Recipient
	without map[uuid.UUID]bool // pushes that are no obstacle: one that is to be moved, members of a batch
	booked  []quota.Booking    // but for these members, which were booked before the refused one, and may have been taken back since

	view     quota.View
	of       booking.Standing
	known    bool // the view and the terms are
	cut      bool // there are too many bookings to read more
	deciders map[quota.Kind]*quota.Decider
	turn     *turn
}

// newReading returns an empty reading. The caller ends its turn.
func newReading(who quota.Recipient, without map[uuid.UUID]bool) *reading {
	return &reading{who: who, without: without, turn: &turn{}}
}

// refuse explains why a single push was refused.
func (s *Service) refuse(ctx context.Context, p *push.Push, without map[uuid.UUID]bool, v booking.Decision) error {
	x := newReading(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, without)
	defer x.turn.end()
	return s.refusal(ctx, x, booking.KindOf(p), p.SendAt, v)
}

// refusal explains why a draft was refused. What Postgres has said under the lock stands. If it did not look far enough
// for the free times, it is asked again.
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

// add notes what was booked by now for members of a batch: more with each member.
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

// decide decides about a push of a kind at a time, by what lies so many times the policy's reach around it, or further,
// until that is enough.
func (s *Service) decide(ctx context.Context, x *reading, kind quota.Kind, at time.Time, times int) (quota.Decision, error) {
	for ; ; times *= 8 {
		if !x.known || !x.view.Shows(at, x.of.Terms.Reach()) {
			if err := s.look(ctx, x, at, times); err != nil {
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

// decider decides about pushes of a kind.
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

// look reads what lies so many times the policy's reach around a time, together with what was read before.
func (s *Service) look(ctx context.Context, x *reading, at time.Time, times int) error {
	reach := s.terms(x.who.Tenant).Reach()
	if err := s.lookAt(ctx, x, quota.Around(at, reach, times)); err != nil || x.of.Terms.Reach() <= reach {
		return err
	}
	return s.lookAt(ctx, x, quota.Around(at, x.of.Terms.Reach(), times)) // the policy has changed
}

// lookAt reads a view, together with what was read before.
func (s *Service) lookAt(ctx context.Context, x *reading, view quota.View) error {
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

// timeline reads a recipient's bookings: together with others if they are few, as they nearly always are.
func (s *Service) timeline(ctx context.Context, x *reading, from, until time.Time) (line quota.Timeline, complete time.Time, err error) {
	held, of, all, err := s.store.Glance(ctx, x.who, s.cfg.Policy, from, until)
	if err != nil {
		return line, until, err
	}
	if !all {
		if err := x.turn.take(ctx, s.crowds, x.who.Tenant); err != nil {
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

// timelineOf is a timeline of what is held, but for some pushes.
func timelineOf(held []booking.Held, without map[uuid.UUID]bool) quota.Timeline {
	bookings := make([]quota.Booking, 0, len(held))
	for _, h := range held {
		if !without[h.ID] {
			bookings = append(bookings, h.Booking)
		}
	}
	return quota.NewTimeline(bookings)
}

// usage says how full every rule is around a push.
func (s *Service) usage(ctx context.Context, p *push.Push) ([]quota.Usage, error) {
	x := newReading(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, nil)
	defer x.turn.end()
	if err := s.look(ctx, x, p.SendAt, 1); err != nil {
		return nil, err
	}
	return x.of.Policy(booking.KindOf(p)).Usage(x.view.Timeline, p.SendAt), nil
}

// explanations are kept while a batch is answered. As long as nothing is refused there are none.
type explanations struct {
	drafts []booking.Draft
	of     map[quota.Recipient]*reading
	batch  map[uuid.UUID]bool
	turn   turn     // for all of them
	last   *reading // that was asked for
	read   int      // bookings, but for those of the last
}

// recipient returns what is known of a recipient. It forgets all others once very much was read.
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
		x = &reading{who: r, without: e.batch, turn: &e.turn}
		e.of[r] = x
	}
	e.read -= x.view.Len()
	e.last = x
	return x
}

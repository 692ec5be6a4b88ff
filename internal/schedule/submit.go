package schedule

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Options are the options of a submit.
type Options struct {
	IdempotencyKey string // empty: none
	RequestHash    []byte // SHA-256 of the request; used with an IdempotencyKey
	ValidateOnly   bool   // answer as usual, but book nothing
	Caps           push.OwnCaps
	RequestID      string // kept with the push, for the log

	Was time.Time // for a move: the send time that the push must still have; zero: any

	retry *retries // for a retry: what it retries
}

// Submit books one push, and returns it as [booking.Booked], or as [booking.Replayed] if an earlier request with the same
// Idempotency-Key has booked it. Its errors are [invalid.FieldErrors], [*Refusal], [*booking.Capped], [push.ErrKeyReused],
// [*OptedOut], [*Suppressed], [*push.GoneError] and [push.ErrUnavailable]. After [push.ErrUnavailable] the push may have been booked;
// only a request with an Idempotency-Key can be repeated safely.
func (s *Service) Submit(ctx context.Context, tenant uuid.UUID, r Request, o Options) (_ booking.Decision, err error) {
	d, err := s.plan(ctx, tenant, r, s.cfg.checkFor, nil)
	if err != nil {
		v, err := (&replay{Service: s, tenant: tenant, o: o}).answer(ctx, "", err)
		s.metrics.observe(o, err)
		return v, err
	}
	planned := d.Push.SendAt
	defer func() {
		if !errors.Is(err, errRetried) {
			s.metrics.observe(o, err)
			if err != nil {
				s.noteRefusal(tenant, r, planned, o, err)
			}
		}
	}()
	if o.retry != nil {
		o.retry.complete(ctx, &d)
	}
	identify(&d.Push, o, "")
	d.Push.Burst = !o.ValidateOnly && s.bursts.note(tenant, d.Push.SendAt)
	answer, before, err := s.askCache(ctx, &r, &d, o)
	if err != nil {
		return booking.Decision{}, err
	}
	failpoint.Hit(failpoint.SubmitReserved)
	d.Show = answer.Fill
	decisions, err := s.book(ctx, tenant, o.Caps, booking.Order{Drafts: []booking.Draft{d}, Policy: s.cfg.Policy, Now: s.clock(&r), DryRun: o.ValidateOnly})
	if err != nil {
		s.cache.Forget(d.Recipient())
		return booking.Decision{}, fmt.Errorf("book: %w", err)
	}
	v := &decisions[0]
	failpoint.Hit(failpoint.BookCommitted)
	if !o.ValidateOnly {
		s.booked(&d, answer, before, v)
	}
	if v.Outcome == booking.NoPlace {
		if before != never {
			s.submits.record(push.RecipientKey(tenant, d.Push.Recipient), refused)
		}
		return *v, s.refuse(ctx, &d.Push, nil, *v)
	}
	err = s.conclude(ctx, &d, v)
	return *v, err
}

// book books an order under the tenant's caps. If a conflict would move a push to a day whose recipients were not
// counted, book counts that day and tries again.
func (s *Service) book(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, o booking.Order) ([]booking.Decision, error) {
	caps := own.Over(s.cfg.Caps)
	if caps == (push.Caps{}) {
		return s.store.Book(ctx, o)
	}
	days := o.Days()
	for {
		decisions, err := s.underCaps(ctx, tenant, caps, days, o, s.store.Book)
		again := false
		for _, d := range decisions {
			if d.Outcome == booking.Uncounted {
				again, days[d.Capped.Day] = true, len(o.Drafts)
			}
		}
		if !again {
			return decisions, err
		}
	}
}

// booked updates the cache, wakes the workers, and counts shadow rules, after Postgres has decided about a draft.
func (s *Service) booked(d *booking.Draft, answer quota.CacheAnswer, before history, v *booking.Decision) {
	if before != never {
		s.syncCache(d.Recipient(), &d.Push, answer, v)
	}
	failpoint.Hit(failpoint.SubmitCached)
	s.wake(&v.Push)
	failpoint.Hit(failpoint.SubmitArmed)
	if v.Shadow != nil {
		s.cfg.Shadows.count(&v.Push, v.Shadow)
	}
}

// askCache asks the cache for a place, and returns the recipient's history before this submit. Its error is a refusal that
// Postgres has confirmed.
//
// It asks only about recipients that this process believes to be loaded: the second submit for a recipient loads it. After
// a refusal it asks Postgres first. A replay, a deferral or a dry run is for the decider alone.
func (s *Service) askCache(ctx context.Context, r *Request, d *booking.Draft, o Options) (answer quota.CacheAnswer, before history, err error) {
	key := push.RecipientKey(d.Push.Tenant, d.Push.Recipient)
	if !o.ValidateOnly {
		before = s.submits.note(key)
	}
	sure := !r.Defer && d.Retried == nil // the conflict of a retry may be another retry
	again := before == refused && sure && o.IdempotencyKey == ""
	switch {
	case before == once:
		answer.Fill = true
	case before >= often && sure && !again:
		answer = s.reserve(d)
		s.metrics.CacheAnswered(answer.State.String())
	}
	if again || answer.State == quota.Blocked && o.IdempotencyKey == "" {
		if err := s.confirmRefusal(ctx, d); err != nil {
			s.submits.record(key, refused)
			return answer, before, err
		}
	}
	if before == refused {
		s.submits.record(key, often)
	}
	return answer, before, nil
}

// reserve asks the cache for a place. A push that quiet hours may move is for the decider alone.
func (s *Service) reserve(d *booking.Draft) quota.CacheAnswer {
	terms, kind := s.terms(d.Push.Tenant), booking.KindOf(&d.Push)
	policy := terms.For(quota.Person{}, kind)
	if policy.Defers(d.Push.SendAt) {
		return quota.CacheAnswer{}
	}
	return s.cache.Reserve(d.Recipient(), s.bookingOf(&d.Push), policy)
}

// bookingOf returns the booking of a push, as the cache holds it.
func (s *Service) bookingOf(p *push.Push) quota.Booking {
	return booking.Under(s.terms(p.Tenant), p)
}

// confirmRefusal returns the refusal of a push that has no place by the current state of Postgres. It returns nil if
// there is a place, because the cache was wrong; or if finding out takes much reading, which is left to the
// transaction.
func (s *Service) confirmRefusal(ctx context.Context, d *booking.Draft) error {
	who, at, terms := d.Recipient(), d.Push.SendAt, s.terms(d.Push.Tenant)
	around := quota.Around(at, terms.Reach(), 2)
	held, of, all, err := s.store.BookingsBetween(ctx, who, s.cfg.Policy, around.From, around.Until)
	if err != nil {
		return fmt.Errorf("confirm refusal: %w", err)
	}
	kind := booking.KindOf(&d.Push)
	to := of.Person.AddressOf(&d.Push)
	unaddressed := d.NeedsAddress && to == ""
	suppressed, err := s.store.SuppressionOf(ctx, who.Tenant, d.Push.Channel, to)
	if err != nil {
		return fmt.Errorf("confirm refusal: %w", err)
	}
	if suppressed != nil || !all || of.Terms.Reach() > terms.Reach() || of.Person.OptOuts.Of(kind).Any() || unaddressed {
		return nil
	}
	around.Timeline = timelineOf(held, nil)
	policy := of.Policy(kind)
	decision, complete := policy.Decide(around, at, s.now())
	if decision.Allowed() || policy.Defers(at) {
		return nil
	}
	return s.refuse(ctx, &d.Push, nil, booking.Decision{Quota: decision, Complete: complete})
}

// identify sets the id of a push, the id of its request, and the ids of its Idempotency-Key and of the member under it.
// The latter two follow from the tenant, the key and the member.
func identify(p *push.Push, o Options, member string) {
	p.ID, p.RequestID = push.NewID(p.SendAt, push.RecipientKey(p.Tenant, p.Recipient)), o.RequestID
	if o.IdempotencyKey != "" {
		p.IdempotencyID = uuid.NewHash(sha256.New(), p.Tenant, []byte(o.IdempotencyKey), 8)
		p.RequestMember = uuid.NewHash(sha256.New(), p.IdempotencyID, []byte(member), 8)
		p.IdempotencyHash = o.RequestHash
	}
}

// syncCache updates the cache after Postgres has decided about a push that the cache was asked about.
func (s *Service) syncCache(who quota.Recipient, asked *push.Push, answer quota.CacheAnswer, v *booking.Decision) {
	booked := v.Outcome == booking.Booked
	holds := booked || v.Outcome == booking.Replayed && holdsPlace(v.Push.Status)
	switch {
	case answer.Fill && v.Crowded:
		s.cache.Skip(who)
	case answer.Fill && (booked || v.Outcome == booking.NoPlace):
		s.cache.Fill(who, v.Bookings, !s.terms(who.Tenant).Plain())
	case answer.State == quota.Free && v.Outcome == booking.NoPlace, answer.State == quota.Blocked && booked:
		s.cache.Forget(who) // the cache was wrong
	case answer.State == quota.Free && !(holds && v.Push.ID == asked.ID):
		s.cache.Drop(who, booking.Of(asked))
	case answer.State == quota.Cold && booked:
		s.cache.Add(who, s.bookingOf(&v.Push))
	}
}

// holdsPlace reports whether a push in this state counts at its send time.
func holdsPlace(status push.Status) bool {
	return status == push.Scheduled || status == push.Sending || status == push.Sent
}

// conclude completes the decision about a push that is booked, or that a repeated request returns. Otherwise it returns the
// error of the refusal, except a refusal by the quota.
func (s *Service) conclude(ctx context.Context, d *booking.Draft, v *booking.Decision) (err error) {
	switch v.Outcome {
	case booking.Booked:
	case booking.Replayed:
		v.Usage, err = s.usage(ctx, &v.Push)
		if err == nil && v.Push.Attempts > 0 {
			v.Push, err = s.store.Push(ctx, d.Push.Tenant, v.Push.ID) // with its sends
		}
	case booking.Gone:
		return &push.GoneError{ID: v.Push.ID}
	case booking.KeyReused:
		return push.ErrKeyReused
	case booking.Retried:
		return errRetried
	case booking.OptedOut:
		return &OptedOut{Recipient: d.Push.Recipient, OptOuts: v.OptOuts}
	case booking.Suppressed:
		return &Suppressed{d.Push.Recipient, *v.Suppression}
	case booking.NoAddress:
		return s.noAddress(&d.Push)
	case booking.NoChannel:
		return s.noChannel(&d.Push)
	default:
		return v.Capped
	}
	v.Push.Paused = s.paused(&v.Push)
	return err
}

package schedule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// badForm wraps a member's error that the caller found before the batch.
type badForm struct{ error }

func (e badForm) Unwrap() error { return e.error }

// ErrOthersRefused: a member of an atomic batch had a place, but was not booked because other members were refused.
var ErrOthersRefused = errors.New("not booked, because other pushes of this atomic batch were refused")

// Member is one push of a batch: the request, and then the decision about it. A member that comes with an Err, because its
// form is invalid, is skipped.
type Member struct {
	Request  Request
	Decision *booking.Decision // as Submit returns it; nil: see Err
	Err      error             // an error of Submit, or ErrOthersRefused
}

// SubmitBatch books pushes in one transaction. Each conflicts with those before it. If atomic, all are booked or none.
// It fills the members' Decision or Err. It fails, and books nothing, if Postgres could not be reached; with
// [push.ErrKeyReused] if another request used the Idempotency-Key; and with [*push.GoneError] if an atomic batch was
// accepted before, and some of its pushes are no longer kept.
func (s *Service) SubmitBatch(ctx context.Context, tenant uuid.UUID, members []Member, atomic bool, o Options) error {
	order := booking.Order{Policy: s.cfg.Policy, Now: s.now(), Atomic: atomic, DryRun: o.ValidateOnly}
	order.Drafts = make([]booking.Draft, 0, len(members)) // drafts are large to copy
	planned := make([]int, 0, len(members))
	sendAt := make([]time.Time, len(members))
	first := replay{Service: s, tenant: tenant, o: o}
	faulty := false
	known := standingsOf(func(yield func(*Request) bool) {
		for i := range members {
			if members[i].Err == nil && !yield(&members[i].Request) {
				return
			}
		}
	})
	for i := range members {
		bulkhead.Yield()
		m := &members[i]
		if m.Err != nil {
			faulty, m.Err = true, badForm{m.Err}
			continue
		}
		d, err := s.plan(ctx, tenant, m.Request, s.cfg.checkFor, known)
		if err != nil {
			v, err := first.answer(ctx, strconv.Itoa(i), err)
			if m.Err = err; err == nil {
				m.Decision = &v
			}
			if errors.Is(m.Err, push.ErrUnavailable) || errors.Is(m.Err, push.ErrKeyReused) {
				return m.Err
			}
			faulty = faulty || m.Err != nil
			continue
		}
		identify(&d.Push, o, strconv.Itoa(i))
		d.Push.Burst = !o.ValidateOnly && s.bursts.note(tenant, d.Push.SendAt)
		order.Drafts = append(order.Drafts, d)
		planned, sendAt[i] = append(planned, i), d.Push.SendAt
	}
	if len(planned) > 0 && !(atomic && faulty) {
		if err := s.bookMembers(ctx, tenant, members, order, planned, o.Caps); err != nil {
			return err
		}
	}
	if atomic {
		for _, m := range members {
			if gone, ok := errors.AsType[*push.GoneError](m.Err); ok { // then all were accepted before
				return gone
			}
		}
		refuseOthers(members)
	}
	for i := range members {
		m := &members[i]
		if s.metrics.observe(o, m.Err); m.Err != nil {
			s.noteRefusal(tenant, m.Request, sendAt[i], o, m.Err)
		}
	}
	return nil
}

// bookMembers books the planned members. It does not ask the cache, which would decide members by others that may be
// refused themselves. Afterwards it drops the recipients that the cache may hold: this is cheaper than updating them.
func (s *Service) bookMembers(ctx context.Context, tenant uuid.UUID, members []Member, order booking.Order, planned []int, caps push.OwnCaps) error {
	decisions, err := s.book(ctx, tenant, caps, order)
	failpoint.Hit(failpoint.BatchCommitted)
	if !order.DryRun {
		for i := range order.Drafts {
			if who := order.Drafts[i].Recipient(); s.submits.known(push.RecipientKey(tenant, who.ID)) {
				s.cache.Forget(who)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("book batch: %w", err)
	}
	for i := range decisions {
		if decisions[i].Outcome == booking.KeyReused {
			return push.ErrKeyReused
		}
	}
	why := explanations{drafts: order.Drafts}
	defer why.permit.end()
	for n, i := range planned {
		bulkhead.Yield()
		m := &members[i]
		if d, v := &order.Drafts[n], &decisions[n]; v.Outcome == booking.NoPlace {
			m.Err = s.refusal(ctx, why.recipient(d.Recipient()), booking.KindOf(&d.Push), d.Push.SendAt, *v)
		} else if m.Err = s.conclude(ctx, d, v); m.Err == nil {
			m.Decision = v
		}
		if errors.Is(m.Err, push.ErrUnavailable) {
			return m.Err
		}
	}
	if order.DryRun || order.Atomic && anyFailed(members) {
		return nil
	}
	for _, i := range planned {
		if m := &members[i]; m.Err == nil && m.Decision.Outcome == booking.Booked {
			s.wake(&m.Decision.Push)
			if m.Decision.Shadow != nil {
				s.cfg.Shadows.count(&m.Decision.Push, m.Decision.Shadow)
			}
		}
	}
	return nil
}

// refuseOthers replaces the decisions of an atomic batch by ErrOthersRefused if any member failed.
func refuseOthers(members []Member) {
	if !anyFailed(members) {
		return
	}
	for i := range members {
		if members[i].Err == nil {
			members[i].Decision, members[i].Err = nil, ErrOthersRefused
		}
	}
}

func anyFailed(members []Member) bool {
	for i := range members {
		if members[i].Err != nil {
			return true
		}
	}
	return false
}

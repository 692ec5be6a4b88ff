package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// badForm is a member's error that its caller had found before.
type badForm struct{ error }

func (e badForm) Unwrap() error { return e.error }

// ErrOthersRefused: a member of an atomic batch had a place, but was not booked because others had none.
var ErrOthersRefused = errors.New("not booked, because other pushes of this atomic batch were refused")

// Member is one push of a batch: what was asked, and then what became of it. A request whose form was already found
// wrong comes with its Err and is passed over.
type Member struct {
	Request Request
	Result  Result
	Err     error // as of Submit, or ErrOthersRefused
}

// SubmitBatch books many pushes in one transaction. Each conflicts with those before it. If atomic, all are booked or
// none. It fills the members' Result or Err. It fails, and books nothing, if Postgres could not be reached or a
// member's id was used by another request: [push.ErrKeyReused].
func (s *Service) SubmitBatch(ctx context.Context, tenant uuid.UUID, members []Member, atomic bool, o Options) error {
	order := booking.Order{Policy: s.cfg.Policy, Now: s.now(), Atomic: atomic, DryRun: o.ValidateOnly}
	var planned []int
	faulty := false
	for i := range members {
		bulkhead.Yield()
		m := &members[i]
		if m.Err != nil {
			faulty, m.Err = true, badForm{m.Err}
			continue
		}
		d, err := s.plan(tenant, m.Request)
		if err != nil {
			m.Result, m.Err = s.replay(ctx, tenant, o, strconv.Itoa(i), err)
			if errors.Is(m.Err, push.ErrUnavailable) || errors.Is(m.Err, push.ErrKeyReused) {
				return m.Err
			}
			faulty = faulty || m.Err != nil
			continue
		}
		identify(&d.Push, o, strconv.Itoa(i))
		d.Push.Bulk = !o.ValidateOnly && s.shares.bulk(tenant, d.Push.SendAt)
		order.Drafts = append(order.Drafts, d)
		planned = append(planned, i)
	}
	if len(planned) > 0 && !(atomic && faulty) {
		if err := s.bookMembers(ctx, tenant, members, order, planned, o.Caps); err != nil {
			return err
		}
	}
	if atomic {
		refuseOthers(members)
	}
	for _, m := range members {
		s.observe(o, m.Err)
	}
	return nil
}

// bookMembers books what was planned. Batches pass the cache by: it would decide members by others that may themselves
// be refused. Afterwards it forgets the recipients, which is cheaper than to tell it everything.
func (s *Service) bookMembers(ctx context.Context, tenant uuid.UUID, members []Member, order booking.Order, planned []int, caps push.OwnCaps) error {
	decisions, err := s.book(ctx, tenant, caps, order)
	failpoint.Hit(failpoint.BatchCommitted)
	if !order.DryRun {
		recipients := make([]quota.Recipient, len(order.Drafts))
		for i, d := range order.Drafts {
			recipients[i] = d.Recipient()
		}
		s.cache.Forget(recipients...)
	}
	if err != nil {
		return fmt.Errorf("book batch: %w", err)
	}
	if slices.ContainsFunc(decisions, func(v booking.Decision) bool { return v.Outcome == booking.KeyReused }) {
		return push.ErrKeyReused
	}
	var booked []push.Push
	why := explanations{drafts: order.Drafts}
	defer why.turn.end()
	for n, i := range planned {
		bulkhead.Yield()
		m := &members[i]
		if d, v := order.Drafts[n], decisions[n]; v.Outcome == booking.NoPlace {
			m.Err = s.refusal(ctx, why.recipient(d.Recipient()), d.Push.SendAt, v)
		} else {
			m.Result, m.Err = s.result(ctx, d, v)
		}
		if errors.Is(m.Err, push.ErrUnavailable) {
			return m.Err
		}
		if m.Err == nil && !m.Result.Replayed {
			booked = append(booked, m.Result.Push)
		}
	}
	if !order.DryRun && !(order.Atomic && anyFailed(members)) {
		s.wake(booked...)
	}
	return nil
}

// refuseOthers takes the success from the members of an atomic batch, if not all of them have it.
func refuseOthers(members []Member) {
	if !anyFailed(members) {
		return
	}
	for i := range members {
		if members[i].Err == nil {
			members[i].Result, members[i].Err = Result{}, ErrOthersRefused
		}
	}
}

func anyFailed(members []Member) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.Err != nil })
}

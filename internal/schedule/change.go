package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// Cancel ends a push that still waits and gives its place back. Once it has
// returned without an error, nothing is delivered any more. A push that can not
// be canceled comes with [push.ErrNotCancelable].
func (s *Service) Cancel(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	p, err := s.store.Cancel(ctx, tenant, id)
	if err != nil {
		return p, fmt.Errorf("cancel: %w", err)
	}
	failpoint.Hit(failpoint.CancelCommitted)
	s.caps.forget(tenant, store.DayOf(p.SendAt))
	s.cache.Release(quota.Recipient{Tenant: tenant, ID: p.Recipient}, id)
	return p, nil
}

// Reschedule moves a push that still waits to another send time, under the
// tenant's own caps: a move can bring a recipient to a full day. Its errors
// are those of Submit, and [push.ErrNotReschedulable], which comes with the
// push.
func (s *Service) Reschedule(ctx context.Context, tenant, id uuid.UUID, to time.Time, own push.OwnCaps) (Result, error) {
	p, err := s.store.Push(ctx, tenant, id)
	if err != nil {
		return Result{}, fmt.Errorf("reschedule: %w", err)
	}
	now, old := s.now().UTC(), store.DayOf(p.SendAt)
	var bad invalid.FieldErrors
	p.SendAt = s.sendTime(to, now, &bad)
	p.RequestedSendAt = p.SendAt
	if p.TTL == 0 {
		checkExpiry(p.ExpiresAt, p.SendAt, now, &bad)
	}
	switch {
	case p.Status != push.Scheduled:
		return Result{Push: p}, push.ErrNotReschedulable
	case len(bad) > 0:
		return Result{}, about("send_at", stamp(to), bad)
	}
	caps := own.Over(s.cfg.Caps)
	caps.PendingPushes = 0 // it stays one
	v, err := s.move(ctx, caps, p)
	if err != nil {
		if errors.Is(err, push.ErrUnavailable) {
			s.cache.Forget(quota.Recipient{Tenant: tenant, ID: p.Recipient})
		}
		return Result{Push: v.Push}, fmt.Errorf("reschedule: %w", err)
	}
	who := quota.Recipient{Tenant: tenant, ID: p.Recipient}
	switch v.Outcome {
	case store.OverCap:
		return Result{Push: v.Push}, v.Capped
	case store.Refused:
		x := explain(who, map[uuid.UUID]bool{id: true})
		defer x.turn.end()
		return Result{Push: v.Push}, s.refusal(ctx, x, p.SendAt, v)
	}
	failpoint.Hit(failpoint.MoveCommitted)
	s.caps.forget(tenant, old)
	s.cache.Hold(who, quota.Booking{ID: id, At: v.Push.SendAt})
	s.arm(ctx, v.Push)
	v.Push.Sends = p.Sends
	return Result{Push: v.Push, Usage: v.Usage}, nil
}

// move is a move of a push under caps.
func (s *Service) move(ctx context.Context, caps push.Caps, p push.Push) (store.Decision, error) {
	order := store.Order{Drafts: []store.Draft{{Push: p}}, Policy: s.cfg.Policy, Now: s.now(), Arm: s.armAhead()}
	reserved, err := s.caps.reserve(ctx, p.Tenant, caps, 1, landings(order.Drafts))
	if err != nil {
		return store.Decision{}, err
	}
	if reserved != nil {
		order.CapUsage = reserved.CapUsage
	}
	v, err := s.store.Reschedule(ctx, order)
	if err != nil {
		reserved.doubt()
	} else {
		reserved.settle([]store.Decision{v})
	}
	return v, err
}

// about says of the one field that the caller sent what is wrong with the push.
func about(field, value string, bad invalid.FieldErrors) error {
	for i := range bad {
		f := &bad[i]
		if f.Field != field {
			f.Message = fmt.Sprintf("the push's %s, %v, %s", f.Field, f.Value, f.Message)
		}
		f.Field, f.Value = field, value
	}
	return bad
}

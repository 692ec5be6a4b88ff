package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Cancel ends a push that still waits and frees its place. After it returns without an error, nothing is delivered any
// more. A push that cannot be canceled comes with [push.ErrNotCancelable].
func (s *Service) Cancel(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	p, err := s.store.Cancel(ctx, tenant, id)
	return s.canceled(tenant, p, err)
}

// CancelUnlessSent cancels a push as [Service.Cancel] does. A push that is being sent comes with [push.ErrNotCancelable],
// and is not tried again: if the attempt under way does not send it, it is canceled.
func (s *Service) CancelUnlessSent(ctx context.Context, tenant, id uuid.UUID) (push.Push, error) {
	p, err := s.store.CancelUnlessSent(ctx, tenant, id)
	return s.canceled(tenant, p, err)
}

// canceled frees the place of a canceled push in the cache.
func (s *Service) canceled(tenant uuid.UUID, p push.Push, err error) (push.Push, error) {
	if err != nil {
		return p, fmt.Errorf("cancel: %w", err)
	}
	failpoint.Hit(failpoint.CancelCommitted)
	s.caps.forget(tenant, booking.DayOf(p.SendAt))
	s.cache.Release(quota.Recipient{Tenant: tenant, ID: p.Recipient}, booking.Of(&p))
	return p, nil
}

// Reschedule moves a push that still waits to another send time, under the tenant's caps: a move can bring a recipient
// to a full day. It uses Caps, ValidateOnly and Was of the options. Its errors are the errors of Submit, and
// [push.ErrNotReschedulable] and [push.ErrMoved], which come with the push.
func (s *Service) Reschedule(ctx context.Context, tenant, id uuid.UUID, to When, o Options) (v booking.Decision, err error) {
	p, err := s.store.Push(ctx, tenant, id)
	if err != nil {
		return v, fmt.Errorf("reschedule: %w", err)
	}
	who, now, old := quota.Recipient{Tenant: tenant, ID: p.Recipient}, s.now().UTC(), booking.DayOf(p.SendAt)
	known := p
	var bad invalid.FieldErrors
	if p.SendAt, err = s.when(ctx, to, who, nil, now, &bad); err != nil {
		return v, fmt.Errorf("reschedule: %w", err)
	}
	if !o.Was.IsZero() && !known.SendAt.Equal(o.Was) {
		return booking.Decision{Push: known}, push.ErrMoved
	}
	p.RequestedSendAt = p.SendAt
	if p.TTL == 0 {
		checkExpiry(p.ExpiresAt, p.SendAt, now, &bad)
	}
	switch {
	case p.Status != push.Scheduled:
		return booking.Decision{Push: p}, push.ErrNotReschedulable
	case len(bad) > 0:
		return v, about(to, bad)
	}
	v, err = s.move(ctx, o, p)
	if err != nil {
		if errors.Is(err, push.ErrUnavailable) {
			s.cache.Forget(who)
		}
		return v, fmt.Errorf("reschedule: %w", err)
	}
	switch v.Outcome {
	case booking.OverCap:
		return v, v.Capped
	case booking.OptedOut:
		return v, &OptedOut{Recipient: p.Recipient, OptOuts: v.OptOuts}
	case booking.NoPlace:
		return v, s.refuse(ctx, &p, map[uuid.UUID]bool{id: true}, v)
	}
	if !o.ValidateOnly {
		failpoint.Hit(failpoint.MoveCommitted)
		s.caps.forget(tenant, old)
		s.cache.Hold(who, booking.Of(&v.Push))
		s.wake(&v.Push)
	}
	v.Push.Sends, v.Push.Paused = p.Sends, s.paused(&v.Push)
	return v, nil
}

// move books a move under caps.
func (s *Service) move(ctx context.Context, options Options, p push.Push) (d booking.Decision, err error) {
	caps := options.Caps.Over(s.cfg.Caps)
	caps.PendingPushes = 0 // the push was pending before
	p.Burst = !options.ValidateOnly && s.bursts.note(p.Tenant, p.SendAt)
	latest := s.now().UTC().Add(s.cfg.MaxHorizon).Truncate(quota.Second)
	if p.TTL == 0 {
		latest = earliest(latest, p.ExpiresAt.Add(-time.Nanosecond).Truncate(quota.Second))
	}
	o := booking.Order{Drafts: []booking.Draft{{Push: p, Last: latest, Far: true, Was: options.Was}}, Policy: s.cfg.Policy, Now: s.now(), DryRun: options.ValidateOnly}
	_, err = s.underCaps(ctx, p.Tenant, caps, o.Days(), o, func(ctx context.Context, o booking.Order) ([]booking.Decision, error) {
		d, err = s.store.Reschedule(ctx, o)
		return []booking.Decision{d}, err
	})
	return d, err
}

// about reports faults of the moved push under the field that the caller sent.
func about(to When, bad invalid.FieldErrors) error {
	for i := range bad {
		f := &bad[i]
		if f.Field == "time_zone" {
			continue
		}
		if f.Field != to.field() {
			f.Limit = fmt.Sprint(f.Value)
			f.Message = fmt.Sprintf("the push's %s, %s, %s", f.Field, f.Limit, f.Message)
		}
		f.Field, f.Value = to.field(), to.written()
	}
	return bad
}

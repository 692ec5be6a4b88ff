package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// The first push of a chain of retries knows the latest retry. So at most one push of the chain has not failed or
// expired, however the retries were requested, and no recipient gets two messages because an answer was lost.

// errRetried: another request has retried the push meanwhile.
var errRetried = errors.New("the push was retried meanwhile")

// retryTries bounds the tries of a retry. Each concurrent retry of the same push can use up one try.
const retryTries = 10

// Retry books a failed or expired push again, as a new push. The request determines the send time, what to do if there
// is no place, and the expiry; everything else comes from the old push. Without an expiry in the request, the retry
// keeps a fixed expiry that is still ahead, or else the old push's time to live. If an earlier retry was sent, or may
// still be sent, Retry returns it as [booking.Retried]. The errors are the errors of Submit, and
// [push.ErrNotRetryable], which comes with the push.
func (s *Service) Retry(ctx context.Context, tenant, id uuid.UUID, r Request, o Options) (v booking.Decision, err error) {
	for range retryTries {
		before, err := s.retries(ctx, tenant, id)
		switch {
		case err != nil:
			return booking.Decision{}, fmt.Errorf("retry: %w", err)
		case before.push.Status != push.Failed && before.push.Status != push.Expired:
			return booking.Decision{Push: before.push}, push.ErrNotRetryable
		case holdsPlace(before.latest.Status):
			return s.retried(ctx, tenant, &before.latest, o)
		}
		if v, err = s.retry(ctx, tenant, before, r, o); !errors.Is(err, errRetried) {
			return v, err
		}
	}
	return booking.Decision{}, fmt.Errorf("retry: %w: %w", push.ErrUnavailable, errRetried)
}

// retries is a push, the first push of its chain of retries (which may be the push itself), and the latest retry in the
// chain, if any.
type retries struct{ push, first, latest push.Push }

func (s *Service) retries(ctx context.Context, tenant, id uuid.UUID) (all retries, err error) {
	if all.push, err = s.store.Push(ctx, tenant, id); err != nil {
		return all, err
	}
	all.first = all.push
	if first := all.push.Retry.First; first != uuid.Nil {
		all.first, err = s.store.Push(ctx, tenant, first)
		if errors.Is(err, push.ErrNotFound) { // no longer kept
			all.first, err = all.push, nil
		}
	}
	if latest := all.first.Retry.Latest; err == nil && latest != uuid.Nil {
		all.latest, err = s.store.Push(ctx, tenant, latest)
		if errors.Is(err, push.ErrNotFound) {
			err = &push.GoneError{ID: latest}
		}
	}
	return all, err
}

// retried returns a retry that was made before, by the same request or by another one.
func (s *Service) retried(ctx context.Context, tenant uuid.UUID, latest *push.Push, o Options) (booking.Decision, error) {
	v, err := (&replay{Service: s, tenant: tenant, o: o}).answer(ctx, "", errRetried)
	if !errors.Is(err, errRetried) {
		return v, err
	}
	v = booking.Decision{Outcome: booking.Replayed, Push: *latest}
	err = s.conclude(ctx, &booking.Draft{Push: *latest}, &v)
	v.Outcome = booking.Retried
	return v, err
}

// retry books the retry.
func (s *Service) retry(ctx context.Context, tenant uuid.UUID, before retries, r Request, o Options) (booking.Decision, error) {
	old := &before.push
	r.Content = old.Content
	if err := s.keepExpiry(ctx, old, &r); err != nil {
		return booking.Decision{}, fmt.Errorf("retry: %w", err)
	}
	o.retry = &before
	return s.Submit(ctx, tenant, r, o)
}

// complete adds to a draft what follows from the retried push.
func (all *retries) complete(ctx context.Context, d *booking.Draft) {
	old := &all.push
	d.Push.Rendering = old.Rendering
	d.Push.Campaign, d.Retried, d.By = old.Campaign, &all.latest.ID, push.ActorOf(ctx)
	d.Push.Retry = push.RetryLinks{Of: old.ID, First: all.first.ID, Doubt: all.doubt()}
}

// doubt reports whether the message may have arrived already.
func (all *retries) doubt() bool {
	for _, p := range []push.Push{all.push, all.first, all.latest} {
		if p.PossiblyDelivered || p.Retry.Doubt {
			return true
		}
	}
	return false
}

// keepExpiry sets the expiry of a retry, unless the request has one.
func (s *Service) keepExpiry(ctx context.Context, old *push.Push, r *Request) error {
	if !r.ExpiresAt.IsZero() {
		return nil
	}
	r.TTL = old.ExpiresAt.Sub(old.SendAt)
	if old.TTL > 0 {
		return nil
	}
	now := s.now().UTC()
	var ignored invalid.FieldErrors // the plan reports them
	at, err := s.when(ctx, r.when(), quota.Recipient{Tenant: old.Tenant, ID: old.Recipient}, nil, now, &ignored)
	if old.ExpiresAt.After(at) && old.ExpiresAt.After(now) {
		r.ExpiresAt = old.ExpiresAt
	}
	return err
}

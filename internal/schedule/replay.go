package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// replay answers a request that is invalid by now, but may repeat one that was accepted before its send time passed.
type replay struct {
	*Service
	tenant uuid.UUID
	o      Options

	asked bool
	made  map[uuid.UUID]booking.Keyed // by member
	other bool                        // another request used the key
}

// answer returns the push that the first request made for a member, or the error invalid.
func (r *replay) answer(ctx context.Context, member string, invalid error) (v booking.Decision, err error) {
	if r.o.IdempotencyKey == "" {
		return v, invalid
	}
	p := push.Push{Tenant: r.tenant}
	identify(&p, r.o, member)
	if err := r.ask(ctx, p.IdempotencyID); err != nil {
		return v, fmt.Errorf("find the first request: %w", err)
	}
	k, ok := r.made[p.RequestMember]
	switch {
	case r.other:
		return v, push.ErrKeyReused
	case !ok:
		return v, invalid
	}
	old, err := r.store.Push(ctx, r.tenant, k.ID)
	switch {
	case errors.Is(err, push.ErrNotFound):
		return v, &push.GoneError{ID: k.ID}
	case err != nil:
		return v, fmt.Errorf("read the first request's push: %w", err)
	}
	v = booking.Decision{Outcome: booking.Replayed, Push: old}
	err = r.conclude(ctx, &booking.Draft{Push: old}, &v)
	return v, err
}

// ask reads, once, which pushes the key has made.
func (r *replay) ask(ctx context.Context, key uuid.UUID) error {
	if r.asked {
		return nil
	}
	all, err := r.store.Keyed(ctx, r.tenant, key)
	if err != nil {
		return err
	}
	r.asked, r.made = true, make(map[uuid.UUID]booking.Keyed, len(all))
	for _, k := range all {
		r.made[k.Member] = k
		r.other = r.other || !bytes.Equal(k.Hash, r.o.RequestHash)
	}
	return nil
}

// Submitted returns the push that an earlier submit with these options has made, if there is one. It submits nothing.
func (s *Service) Submitted(ctx context.Context, tenant uuid.UUID, o Options) (id uuid.UUID, made bool, err error) {
	p := push.Push{Tenant: tenant}
	identify(&p, o, "")
	all, err := s.store.Keyed(ctx, tenant, p.IdempotencyID)
	if err != nil || len(all) == 0 {
		return uuid.Nil, false, err
	}
	return all[0].ID, true, nil
}

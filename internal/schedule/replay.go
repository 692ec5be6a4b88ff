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
func (r *replay) answer(ctx context.Context, member string, invalid error) (Result, error) {
	if r.o.IdempotencyKey == "" {
		return Result{}, invalid
	}
	p := push.Push{Tenant: r.tenant}
	identify(&p, r.o, member)
	if err := r.ask(ctx, p.IdempotencyID); err != nil {
		return Result{}, fmt.Errorf("find the first request: %w", err)
	}
	k, ok := r.made[p.RequestMember]
	switch {
	case r.other:
		return Result{}, push.ErrKeyReused
	case !ok:
		return Result{}, invalid
	}
	old, err := r.store.Push(ctx, r.tenant, k.ID)
	switch {
	case errors.Is(err, push.ErrNotFound):
		return Result{}, &push.GoneError{ID: k.ID}
	case err != nil:
		return Result{}, fmt.Errorf("read the first request's push: %w", err)
	}
	return r.result(ctx, &booking.Draft{Push: old}, &booking.Decision{Outcome: booking.Replayed, Push: old})
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

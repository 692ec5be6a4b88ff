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

// replay answers a request that is invalid by now but may repeat one that was accepted while its send time still lay
// ahead: with the push that the first one made, or with the error invalid.
func (s *Service) replay(ctx context.Context, tenant uuid.UUID, o Options, member string, invalid error) (Result, error) {
	if o.IdempotencyKey == "" {
		return Result{}, invalid
	}
	p := push.Push{Tenant: tenant}
	identify(&p, o, member)
	old, err := s.store.Push(ctx, tenant, p.ID)
	switch {
	case errors.Is(err, push.ErrNotFound):
		return Result{}, invalid
	case err != nil:
		return Result{}, fmt.Errorf("look for the first request: %w", err)
	case !bytes.Equal(old.IdempotencyHash, o.RequestHash):
		return Result{}, push.ErrKeyReused
	}
	return s.result(ctx, booking.Draft{Push: old}, booking.Decision{Outcome: booking.Replayed, Push: old})
}

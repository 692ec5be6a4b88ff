package schedule

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// How many requests may have a recipient with very many bookings in memory at a time, and how many of one tenant. Each
// takes some 20 MB, and a processor for a moment.
const (
	allTurns    = 2
	tenantTurns = 1
)

// turn is that of one request. It takes one when it is needed for the first time.
type turn struct{ loan *bulkhead.Loan[uuid.UUID] }

func (t *turn) take(ctx context.Context, from *bulkhead.Bulkhead[uuid.UUID], tenant uuid.UUID) (err error) {
	if t.loan != nil {
		return nil
	}
	if t.loan, err = from.Acquire(ctx, tenant, 1); err != nil {
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	return nil
}

// end is to be called when nothing of what was read is needed any more.
func (t *turn) end() { t.loan.Release() }

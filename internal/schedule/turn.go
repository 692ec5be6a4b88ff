package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// The maximum number of concurrent requests that hold a recipient with very many bookings in memory, overall and per
// tenant. Each takes about 20 MB, and a processor for a moment.
const (
	allTurns    = 2
	tenantTurns = 1
)

// permits limits the requests that read such recipients.
type turns struct {
	*bulkhead.Bulkhead[uuid.UUID]
	neighbours *bulkhead.Neighbours[uuid.UUID]
}

func newTurns(neighbours *bulkhead.Neighbours[uuid.UUID]) *turns {
	return &turns{bulkhead.New[uuid.UUID](allTurns, tenantTurns), neighbours}
}

// permit belongs to one request. It is acquired when it is first needed.
type turn struct {
	from  *turns
	loan  *bulkhead.Loan[uuid.UUID]
	began time.Time
}

func (t *turn) take(ctx context.Context, from *turns, tenant uuid.UUID) (err error) {
	if t.loan != nil {
		return nil
	}
	if t.loan, err = from.Acquire(ctx, tenant, 1); err != nil {
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	t.from, t.began = from, time.Now()
	return nil
}

// end releases the permit. Call it when the bookings are no longer needed.
func (t *turn) end() {
	if t.loan != nil {
		t.from.neighbours.Rest(t.loan, t.began)
	}
}

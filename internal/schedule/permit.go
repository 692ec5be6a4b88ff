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
	allPermits    = 2
	tenantPermits = 1
)

// permits limits the requests that read such recipients.
type permits struct {
	*bulkhead.Bulkhead[uuid.UUID]
	neighbours *bulkhead.Neighbours[uuid.UUID]
}

func newPermits(neighbours *bulkhead.Neighbours[uuid.UUID]) *permits {
	return &permits{bulkhead.New[uuid.UUID](allPermits, tenantPermits), neighbours}
}

// permit belongs to one request. It is acquired when it is first needed.
type permit struct {
	from  *permits
	loan  *bulkhead.Loan[uuid.UUID]
	began time.Time
}

func (t *permit) take(ctx context.Context, from *permits, tenant uuid.UUID) (err error) {
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
func (t *permit) end() {
	if t.loan != nil {
		t.from.neighbours.Rest(t.loan, t.began)
	}
}

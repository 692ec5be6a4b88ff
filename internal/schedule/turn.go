package schedule

import (
	"context"
	"fmt"
	"time"

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

// turns bound the requests that read such recipients.
type turns struct {
	*bulkhead.Bulkhead[uuid.UUID]
	neighbours *bulkhead.Neighbours[uuid.UUID]
}

func newTurns(neighbours *bulkhead.Neighbours[uuid.UUID]) *turns {
	return &turns{bulkhead.New[uuid.UUID](allTurns, tenantTurns), neighbours}
}

// turn is that of one request. It takes one when it is needed for the first time.
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

// end is to be called when nothing of what was read is needed any more.
func (t *turn) end() {
	if t.loan != nil {
		t.from.neighbours.Rest(t.loan, t.began)
	}
}

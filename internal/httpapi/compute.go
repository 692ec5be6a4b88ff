package httpapi

import (
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// computing has turns at computing for long: reading a batch or writing a page takes a processor for milliseconds.
// While several tenants ask, half of the processors do so for each of them, half of the time, so that small requests
// find a processor at once. The Go scheduler alone would have each of their steps wait for all that computes.
type computing struct {
	turns      *bulkhead.Bulkhead[uuid.UUID]
	neighbours *bulkhead.Neighbours[uuid.UUID]
}

func newComputing(neighbours *bulkhead.Neighbours[uuid.UUID]) *computing {
	processors := int64(runtime.GOMAXPROCS(0))
	return &computing{turns: bulkhead.New[uuid.UUID](2*processors, processors), neighbours: neighbours}
}

// compute does what keeps a processor busy for long, and waits for nothing, when it is the tenant's turn.
func (c *call) compute(do func() error) error {
	turn, err := c.computing.turns.Acquire(c.r.Context(), c.caller.Tenant, c.computing.neighbours.Weight())
	if err != nil {
		return err
	}
	defer c.computing.neighbours.Rest(turn, time.Now())
	return do()
}

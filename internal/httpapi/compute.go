package httpapi

import (
	"runtime"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// newComputing returns a bulkhead of turns at computing for long: reading a batch or writing
// a page takes a processor for milliseconds. There are half as many turns as processors,
// so that small requests find one of these at once. The Go scheduler alone would have
// each of their steps wait for all that computes.
func newComputing() *bulkhead.Bulkhead[uuid.UUID] {
	turns := int64(max(1, runtime.GOMAXPROCS(0)/2))
	return bulkhead.New[uuid.UUID](turns, turns)
}

// compute does what keeps a processor busy for long, and waits for nothing, when it is
// the tenant's turn.
func (c *call) compute(do func() error) error {
	turn, err := c.computing.Acquire(c.r.Context(), c.caller.Tenant, 1)
	if err != nil {
		return err
	}
	defer turn.Release()
	return do()
}

package bulkhead

import (
	"context"
	"runtime"
	"time"
)

// Computing has turns at computing for long: to decide or to read a batch, or to write a page, takes a processor for
// milliseconds. While several tenants are at work, half of the processors do so for each of them, half of the time, so
// that small requests find a processor at once. The Go scheduler alone would have each of their steps wait for all that
// computes. It is safe for concurrent use. A nil Computing has turns for everybody.
type Computing[K comparable] struct {
	turns      *Bulkhead[K]
	neighbours *Neighbours[K]
}

// NewComputing returns the turns of a program. Neighbours tell when they are to be kept.
func NewComputing[K comparable](neighbours *Neighbours[K]) *Computing[K] {
	processors := int64(runtime.GOMAXPROCS(0))
	return &Computing[K]{turns: New[K](2*processors, processors), neighbours: neighbours}
}

// Do does work for a tenant when it is the tenant's turn, and returns its error. The work keeps a processor busy, and
// takes no further turn. Do fails without it if ctx ends before, with a [*FullError].
func (c *Computing[K]) Do(ctx context.Context, key K, work func() error) error {
	if c == nil {
		return work()
	}
	c.neighbours.Seen(key) // the request may have come long ago
	turn, err := c.turns.Acquire(ctx, key, c.neighbours.Weight())
	if err != nil {
		return err
	}
	defer c.neighbours.Rest(turn, time.Now())
	return work()
}

// Yield lets what else is to be done have the processor first. Long work calls it between its steps, as between the
// members of a batch: the scheduler alone would give others their turn after ten milliseconds.
func Yield() { runtime.Gosched() }

package bulkhead

import (
	"context"
	"runtime"
	"time"
)

// Computing limits concurrent long computations: to decide or read a batch, or to render a page, keeps a processor busy
// for milliseconds. While several tenants are active, each of them can use half of the processors, half of the time, so
// that small requests find a processor at once. With the Go scheduler alone, each of their steps would wait for all
// computations. It is safe for concurrent use. A nil Computing has no limit.
type Computing[K comparable] struct {
	permits    *Bulkhead[K]
	neighbours *Neighbours[K]
}

// NewComputing repermits the limit of a program. It applies while neighbours reports several tenants.
func NewComputing[K comparable](neighbours *Neighbours[K]) *Computing[K] {
	processors := int64(runtime.GOMAXPROCS(0))
	return &Computing[K]{permits: New[K](2*processors, processors), neighbours: neighbours}
}

// Do waits for a permit for a tenant, does the work, and repermits its error. The work keeps a processor busy, and must
// not call Do. Do fails without calling work, with a [*FullError], if ctx ends before.
func (c *Computing[K]) Do(ctx context.Context, key K, work func() error) error {
	if c == nil {
		return work()
	}
	c.neighbours.Seen(key) // the request may have arrived long ago
	permit, err := c.permits.Acquire(ctx, key, c.neighbours.Weight())
	if err != nil {
		return err
	}
	defer c.neighbours.Rest(permit, time.Now())
	return work()
}

// Yield lets other goroutines have the processor first. Long work calls it between its steps, as between the members of
// a batch, because the scheduler alone would switch after ten milliseconds.
func Yield() { runtime.Gosched() }

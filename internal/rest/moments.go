package rest

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"
)

// Moments caches a count of each tenant for a moment, so that it is counted at most once a second, and so that a tenant with very much
// to count keeps Postgres busy for at most a tenth of the time. A cached value is shared, and must not be changed.
type Moments[T any] struct {
	now   func() time.Time
	count func(ctx context.Context, tenant uuid.UUID) (T, error)

	asking singleflight.Group
	mu     sync.Mutex
	kept   map[uuid.UUID]keptCount[T]
}

type keptCount[T any] struct {
	counted T
	until   time.Time
}

const (
	countKept = time.Second
	mostKept  = 10 * time.Second // if counting takes long
	countRest = 10               // a count is kept for at least this many times as long as it took
	maxCounts = 1000             // in the cache
	countTime = 5 * time.Second
)

// NewMoments returns a cache of the results of count.
func NewMoments[T any](now func() time.Time, count func(context.Context, uuid.UUID) (T, error)) *Moments[T] {
	return &Moments[T]{now: now, count: count, kept: map[uuid.UUID]keptCount[T]{}}
}

// Of returns the count of a tenant, at most a second old, or ten seconds if counting takes long.
func (c *Moments[T]) Of(ctx context.Context, tenant uuid.UUID) (T, error) {
	if kept, ok := c.keeps(tenant); ok {
		return kept, nil
	}
	asked, err, _ := c.asking.Do(string(tenant[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime) // other requests wait for it, too
		defer cancel()
		began := c.now()
		counted, err := c.count(ctx, tenant)
		if err == nil {
			kept := min(max(countKept, countRest*c.now().Sub(began)), mostKept)
			c.keep(tenant, keptCount[T]{counted, began.Add(kept)}, began)
		}
		return counted, err
	})
	counted, _ := asked.(T)
	return counted, err
}

func (c *Moments[T]) keeps(tenant uuid.UUID) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kept[tenant]
	return k.counted, c.now().Before(k.until)
}

func (c *Moments[T]) keep(tenant uuid.UUID, k keptCount[T], now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxCounts {
		for of, k := range c.kept {
			if !now.Before(k.until) {
				delete(c.kept, of)
			}
		}
	}
	if len(c.kept) < maxCounts {
		c.kept[tenant] = k
	}
}

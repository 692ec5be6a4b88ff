package bulkhead

import (
	"sync"
	"time"
)

// Company knows whether several tenants are at work. What one of them may have of something while it is alone is more
// than it may have beside others. It is safe for concurrent use.
type Company[K comparable] struct {
	mu      sync.Mutex
	last    K
	several time.Time // when the last one was another than the one before
}

// lately is for how long tenants are believed to be at work.
const lately = 200 * time.Millisecond

// Note notes that a tenant is at work.
func (c *Company[K]) Note(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var none K
	if c.last != key && c.last != none {
		c.several = time.Now()
	}
	c.last = key
}

// Units is what a piece of work counts for: one, or two beside other tenants.
func (c *Company[K]) Units() int64 {
	if c.Several() {
		return 2
	}
	return 1
}

// Several reports whether more than one tenant was at work lately.
func (c *Company[K]) Several() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.several) < lately
}

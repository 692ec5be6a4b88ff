package bulkhead

import (
	"sync"
	"time"
)

// Neighbours tells whether several tenants are at work. A tenant that is alone may have more of something than it may
// have beside others. It is safe for concurrent use. A nil Neighbours takes every tenant to be alone.
type Neighbours[K comparable] struct {
	mu      sync.Mutex
	last    K
	several time.Time // when the last one was another than the one before
}

// lately is for how long tenants are believed to be at work.
const lately = 200 * time.Millisecond

// Seen notes that a tenant is at work.
func (n *Neighbours[K]) Seen(key K) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var none K
	if n.last != key && n.last != none {
		n.several = time.Now()
	}
	n.last = key
}

// Weight is what a piece of work counts for: one, or two beside other tenants.
func (n *Neighbours[K]) Weight() int64 {
	if n.Several() {
		return 2
	}
	return 1
}

// Several reports whether more than one tenant was at work lately.
func (n *Neighbours[K]) Several() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.several) < lately
}

// longestRest is for how long a loan is kept at most after its work. What took longer has waited, for a lock or for
// Postgres, and kept no processor busy.
const longestRest = 250 * time.Millisecond

// Rest gives back a loan for work that began at a time and kept processors busy. Beside other tenants it does so only
// after as much time as the work took, so that half of the time is theirs.
func (n *Neighbours[K]) Rest(loan *Loan[K], began time.Time) {
	if !n.Several() {
		loan.Release()
		return
	}
	time.AfterFunc(min(time.Since(began), longestRest), loan.Release)
}

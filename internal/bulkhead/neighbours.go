package bulkhead

import (
	"sync"
	"time"
)

// Neighbours reports whether several tenants are active. A tenant that is alone may have a larger share than beside
// others. It is safe for concurrent use. A nil Neighbours treats every tenant as alone.
type Neighbours[K comparable] struct {
	mu      sync.Mutex
	last    K
	several time.Time // when the last tenant differed from the one before
}

// A tenant counts as active for lately after each request.
const lately = 200 * time.Millisecond

// Seen marks a tenant as active.
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

// Weight returns the units of a piece of work: one, or two beside other tenants.
func (n *Neighbours[K]) Weight() int64 {
	if n.Several() {
		return 2
	}
	return 1
}

// Several reports whether more than one tenant was active lately.
func (n *Neighbours[K]) Several() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.several) < lately
}

// longestRest bounds how long a loan is kept after its work. Work that took longer has waited, for a lock or for
// Postgres, and kept no processor busy.
const longestRest = 250 * time.Millisecond

// Rest releases a loan for work that began at a time and kept processors busy. Beside other tenants it does so after as
// much time as the work took, so that half of the time is theirs.
func (n *Neighbours[K]) Rest(loan *Loan[K], began time.Time) {
	if !n.Several() {
		loan.Release()
		return
	}
	time.AfterFunc(min(time.Since(began), longestRest), loan.Release)
}

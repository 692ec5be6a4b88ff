// Package bulkhead shares a limited resource (connections, bytes of memory, work for Redis) among tenants, so that
// neither one of them nor several together can use it all up. Each tenant has at most a share of it, and at most as
// much as it leaves free: n tenants that want all they can get leave an (n+1)th part for the next. When everything is
// in use, waiting tenants take turns.
//
// It limits concurrent use. For rates, see package ratelimit.
package bulkhead

import (
	"container/list"
	"context"
	"sync"
)

// Bulkhead lends units to tenants, which are named by values of type K. It is safe for concurrent use.
type Bulkhead[K comparable] struct {
	total, each int64

	mu      sync.Mutex
	used    int64
	tenants map[K]*tenant[K] // tenants that use or want units
	turns   list.List        // of *tenant: the waiting tenants, the next one first
}

// tenant is the use and the waiters of one tenant.
type tenant[K comparable] struct {
	key     K
	used    int64
	waiting list.List     // of *waiter, in order of arrival
	turn    *list.Element // in turns; nil: not waiting
}

// waiter waits for units.
type waiter struct {
	units   int64
	granted chan struct{}
}

// New returns a bulkhead that lends total units, and at most each units to a tenant.
func New[K comparable](total, each int64) *Bulkhead[K] {
	return &Bulkhead[K]{total: total, each: min(total, each), tenants: map[K]*tenant[K]{}}
}

// FullError: a tenant waited for units until its context ended. It wraps the context's error.
type FullError struct {
	Own bool // the tenant has used up its share; otherwise all units are in use
	err error
}

// Error returns the reason.
func (e *FullError) Error() string {
	if e.Own {
		return "bulkhead: the tenant's share is in use: " + e.err.Error()
	}
	return "bulkhead: all units are in use: " + e.err.Error()
}

// Unwrap returns the error of the context.
func (e *FullError) Unwrap() error { return e.err }

// Acquire waits until the tenant may have the units, and lends them. A request for more than a tenant's share gets the
// whole share. Release the loan when the units are no longer used. It fails with a [*FullError] if ctx ends before.
func (b *Bulkhead[K]) Acquire(ctx context.Context, key K, units int64) (*Loan[K], error) {
	units = min(units, b.each)
	if units <= 0 {
		return &Loan[K]{}, nil
	}
	b.mu.Lock()
	loan, lent := b.tryLend(key, units)
	if lent {
		b.mu.Unlock()
		return loan, nil
	}
	t := loan.to
	w := &waiter{units: units, granted: make(chan struct{})}
	place := t.waiting.PushBack(w)
	if t.turn == nil {
		t.turn = b.turns.PushBack(t)
	}
	b.serve() // the tenants before it may wait only for their own units
	b.mu.Unlock()
	select {
	case <-w.granted:
		return loan, nil
	case <-ctx.Done():
		return loan.stopWaiting(ctx, w, place)
	}
}

// TryAcquire is [Bulkhead.Acquire] without waiting. It returns false if the tenant would have to wait.
func (b *Bulkhead[K]) TryAcquire(key K, units int64) (*Loan[K], bool) {
	units = min(units, b.each)
	if units <= 0 {
		return &Loan[K]{}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	loan, lent := b.tryLend(key, units)
	if !lent {
		b.settle(loan.to)
		return nil, false
	}
	return loan, true
}

// tryLend returns a loan for a tenant, and whether its units are lent. They are not lent if the tenant or others have
// to wait.
func (b *Bulkhead[K]) tryLend(key K, units int64) (*Loan[K], bool) {
	t := b.tenants[key]
	if t == nil {
		t = &tenant[K]{key: key}
		b.tenants[key] = t
	}
	loan := &Loan[K]{from: b, to: t, units: units}
	if t.turn != nil || b.turns.Len() > 0 || b.overShare(t, units) || b.used+units > b.total {
		return loan, false
	}
	b.lend(t, units)
	return loan, true
}

// stopWaiting ends the wait of a loan, unless the units were lent at the last moment.
func (l *Loan[K]) stopWaiting(ctx context.Context, w *waiter, place *list.Element) (*Loan[K], error) {
	b := l.from
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted:
		return l, nil
	default:
	}
	full := &FullError{Own: b.overShare(l.to, w.units), err: ctx.Err()}
	l.to.waiting.Remove(place)
	b.settle(l.to)
	b.serve() // it may have blocked others
	return nil, full
}

// overShare reports whether lending units would exceed a tenant's share. A tenant without units gets whatever is free.
func (b *Bulkhead[K]) overShare(t *tenant[K], units int64) bool {
	return t.used+units > b.each || t.used > 0 && t.used+units > b.total-b.used
}

func (b *Bulkhead[K]) lend(t *tenant[K], units int64) {
	t.used += units
	b.used += units
}

// serve lends to tenants in turn, one request at a time. It skips a tenant that has used up its share. A tenant whose
// request is too large for the free units keeps its turn, or smaller requests would overtake it forever.
func (b *Bulkhead[K]) serve() {
	for e := b.turns.Front(); e != nil; {
		t := e.Value.(*tenant[K])
		first := t.waiting.Front()
		w := first.Value.(*waiter)
		switch {
		case b.overShare(t, w.units):
			e = e.Next()
		case b.used+w.units > b.total:
			return
		default:
			b.lend(t, w.units)
			t.waiting.Remove(first)
			close(w.granted)
			b.turns.MoveToBack(e)
			b.settle(t)
			e = b.turns.Front()
		}
	}
}

// settle forgets a tenant that neither has nor wants units, and removes one that does not wait from the turns.
func (b *Bulkhead[K]) settle(t *tenant[K]) {
	if t.turn != nil && t.waiting.Len() == 0 {
		b.turns.Remove(t.turn)
		t.turn = nil
	}
	if t.turn == nil && t.used == 0 {
		delete(b.tenants, t.key)
	}
}

// Loan is a number of lent units; nil, none. It is not safe for concurrent use.
type Loan[K comparable] struct {
	from  *Bulkhead[K]
	to    *tenant[K]
	units int64
}

// Shrink gives units back until the given number is left. It does nothing if the loan has no more.
func (l *Loan[K]) Shrink(units int64) {
	if l == nil || units >= l.units {
		return
	}
	b := l.from
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lend(l.to, units-l.units)
	l.units = units
	b.settle(l.to)
	b.serve()
}

// Release gives all units back. A loan can be released more than once.
func (l *Loan[K]) Release() { l.Shrink(0) }

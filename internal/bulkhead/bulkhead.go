// Package bulkhead shares something bounded (connections, bytes of memory, work for Redis) among tenants, so that
// none of them can take it all, nor several of them together. Each has at most a part of it, and no more than it
// leaves free: n of them that want all they can get leave an (n+1)th part for the next. When it is used up all the
// same, tenants that wait take turns.
//
// It bounds how much is in use at a time. It is not for speed limits, which package ratelimit keeps.
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
	tenants map[K]*tenant[K] // those that use or want units
	turns   list.List        // of *tenant: those that wait, the next one to be served first
}

// tenant is what one tenant uses and waits for.
type tenant[K comparable] struct {
	key     K
	used    int64
	waiting list.List     // of *waiter, the first come first
	turn    *list.Element // in turns; nil: it does not wait
}

// waiter wants units.
type waiter struct {
	units   int64
	granted chan struct{}
}

// New returns a bulkhead that lends total units, and each tenant at most so many of them.
func New[K comparable](total, each int64) *Bulkhead[K] {
	return &Bulkhead[K]{total: total, each: min(total, each), tenants: map[K]*tenant[K]{}}
}

// FullError says that a tenant waited for units until its context ended, whose error it wraps.
type FullError struct {
	Own bool // the tenant has as much in use as it may; otherwise all tenants together have all
	err error
}

// Error says it in one sentence.
func (e *FullError) Error() string {
	if e.Own {
		return "bulkhead: the tenant's part is in use: " + e.err.Error()
	}
	return "bulkhead: everything is in use: " + e.err.Error()
}

// Unwrap returns the error of the context.
func (e *FullError) Unwrap() error { return e.err }

// Acquire waits until the tenant may have so many units, and lends them. A request
// for more than a tenant may ever have is lent all that it may have. Release the
// loan when they are not used any more. It fails only if ctx ends before, with a
// [*FullError].
func (b *Bulkhead[K]) Acquire(ctx context.Context, key K, units int64) (*Loan[K], error) {
	units = min(units, b.each)
	if units <= 0 {
		return &Loan[K]{}, nil
	}
	b.mu.Lock()
	loan, lent := b.atOnce(key, units)
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
	b.serve() // those before it may wait only for units of their own tenants
	b.mu.Unlock()
	select {
	case <-w.granted:
		return loan, nil
	case <-ctx.Done():
		return loan.orGiveUp(ctx, w, place)
	}
}

// TryAcquire is [Bulkhead.Acquire] for who does not wait: it is false if the tenant would have to.
func (b *Bulkhead[K]) TryAcquire(key K, units int64) (*Loan[K], bool) {
	units = min(units, b.each)
	if units <= 0 {
		return &Loan[K]{}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	loan, lent := b.atOnce(key, units)
	if !lent {
		b.settle(loan.to)
		return nil, false
	}
	return loan, true
}

// atOnce returns a loan for a tenant, and whether its units are lent: not where the tenant or others have to wait.
func (b *Bulkhead[K]) atOnce(key K, units int64) (*Loan[K], bool) {
	t := b.tenants[key]
	if t == nil {
		t = &tenant[K]{key: key}
		b.tenants[key] = t
	}
	loan := &Loan[K]{from: b, to: t, units: units}
	if t.turn != nil || b.turns.Len() > 0 || b.own(t, units) || b.used+units > b.total {
		return loan, false
	}
	b.lend(t, units)
	return loan, true
}

// orGiveUp ends the wait of a loan, unless the units were lent at the last moment.
func (l *Loan[K]) orGiveUp(ctx context.Context, w *waiter, place *list.Element) (*Loan[K], error) {
	b := l.from
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.granted:
		return l, nil
	default:
	}
	full := &FullError{Own: b.own(l.to, w.units), err: ctx.Err()}
	l.to.waiting.Remove(place)
	b.settle(l.to)
	b.serve() // it may have been in the way of others
	return nil, full
}

// own reports whether a tenant has too much itself to be lent more. One that has nothing is lent whatever there is.
func (b *Bulkhead[K]) own(t *tenant[K], units int64) bool {
	return t.used+units > b.each || t.used > 0 && t.used+units > b.total-b.used
}

func (b *Bulkhead[K]) lend(t *tenant[K], units int64) {
	t.used += units
	b.used += units
}

// serve lends to tenants in turn, one request of each at a time. A tenant that has all that it may have is passed
// over. One whose request is too large for what is left keeps its turn, or smaller requests would pass it for ever.
func (b *Bulkhead[K]) serve() {
	for e := b.turns.Front(); e != nil; {
		t := e.Value.(*tenant[K])
		first := t.waiting.Front()
		w := first.Value.(*waiter)
		switch {
		case b.own(t, w.units):
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

// settle forgets a tenant that neither has nor wants anything, and takes one that does not wait out of the turns.
func (b *Bulkhead[K]) settle(t *tenant[K]) {
	if t.turn != nil && t.waiting.Len() == 0 {
		b.turns.Remove(t.turn)
		t.turn = nil
	}
	if t.turn == nil && t.used == 0 {
		delete(b.tenants, t.key)
	}
}

// Loan is units that were lent; nil, none. It is not safe for concurrent use.
type Loan[K comparable] struct {
	from  *Bulkhead[K]
	to    *tenant[K]
	units int64
}

// Shrink gives units back until so many are left. It does nothing if there are no more than these.
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

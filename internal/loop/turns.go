package loop

import "context"

// Turns lets the owners of work take turns: in each turn, every owner with work gets one step. K identifies an owner, T
// is a piece of work. It is for one goroutine.
type Turns[K comparable, T any] struct {
	Take  func(ctx context.Context, except []K) (*T, error) // the work that has waited longest, without the work of some owners; nil: none
	Owner func(*T) K

	served []K // owners that had a step in this turn
}

// Next returns the next work, or nil if there is none.
func (t *Turns[K, T]) Next(ctx context.Context) (*T, error) {
	next, err := t.Take(ctx, t.served)
	if err == nil && next == nil && len(t.served) > 0 {
		t.served = t.served[:0]
		next, err = t.Take(ctx, nil)
	}
	if err == nil && next != nil {
		t.served = append(t.served, t.Owner(next))
	}
	return next, err
}

// Package loop repeats background work. All periodic work of the programs runs in a [Loop].
package loop

import (
	"context"
	"log/slog"
	"time"
)

// Loop repeats a pass at every tick. A pass that found as much as it can handle at once is full: the next one follows
// without a pause. A failed pass is logged, and repeated at the next tick.
type Loop struct {
	Name     string        // of the work, for the log
	Interval time.Duration // between ticks
	Log      *slog.Logger
	Pass     func(ctx context.Context) (full bool, err error)

	Delay time.Duration // before the first pass
	Retry time.Duration // after a failed pass; zero: until the next tick
	Wake  chan struct{} // begins a pass before the next tick, unless the last one failed and Retry is set
}

// Run repeats passes until ctx ends. It always returns nil.
func (l Loop) Run(ctx context.Context) error {
	ticker := time.NewTicker(l.Interval)
	defer ticker.Stop()
	if l.Delay > 0 && !sleep(ctx, time.After(l.Delay), nil) {
		return nil
	}
	for {
		full, err := l.Pass(ctx)
		tick, wake := ticker.C, l.Wake
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			l.Log.ErrorContext(ctx, l.Name+" failed; will retry", "error", err)
			if l.Retry > 0 {
				tick, wake = time.After(l.Retry), nil
			}
		case full:
			continue
		}
		if !sleep(ctx, tick, wake) {
			return nil
		}
	}
}

// sleep waits for a tick or a wake-up. It returns false if ctx has ended.
func sleep(ctx context.Context, tick <-chan time.Time, wake <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-tick:
	case <-wake:
	}
	return true
}

// RoundRobin lets the owners of work take turns: in each turn, every owner with work gets one step. K identifies an owner, T
// is a piece of work. It is for one goroutine.
type RoundRobin[K comparable, T any] struct {
	Take  func(ctx context.Context, except []K) (*T, error) // the work that has waited longest, without the work of some owners; nil: none
	Owner func(*T) K

	served []K // owners that had a step in this turn
}

// Next returns the next work, or nil if there is none.
func (t *RoundRobin[K, T]) Next(ctx context.Context) (*T, error) {
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

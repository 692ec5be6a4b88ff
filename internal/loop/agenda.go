package loop

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// seldom is how often a loop on an agenda makes a pass without having been told of work.
	seldom = time.Minute
	// restless is for how long an agenda looks at its interval after there was work.
	restless = 2 * time.Second
)

// Agenda asks one question for many loops, again and again: which of them have work. So a program that has none asks once, and not
// once for each loop. K names the work of a loop.
type Agenda[K comparable] struct {
	Interval time.Duration // between two looks, while there is work or was until a moment ago
	Idle     time.Duration // else
	Log      *slog.Logger
	Look     func(ctx context.Context) ([]K, error) // lists the work that there is

	loops  map[K]*listed
	looked time.Time
	busy   atomic.Pointer[time.Time] // when there was work; nil: there was none yet
}

// listed is a loop on an agenda.
type listed struct {
	every time.Duration // at which it looks while there is work
	woken time.Time
	wake  chan struct{}
	waits atomic.Bool
}

// Add returns a loop that makes its passes when there is work of a kind: at its interval or that of the agenda, whichever is longer.
// It makes one when it begins, and after one that failed. All are added before the agenda runs.
func (a *Agenda[K]) Add(work K, l Loop) Loop {
	if l.Wake == nil {
		l.Wake = make(chan struct{}, 1)
	}
	if a.loops == nil {
		a.loops = map[K]*listed{}
	}
	a.loops[work] = &listed{every: l.Interval, wake: l.Wake}
	a.loops[work].waits.Store(true)
	if l.Retry == 0 {
		l.Retry = l.Interval
	}
	l.Interval = max(seldom, l.Interval)
	return l
}

// Expect has the agenda look at its interval for a moment: something happens that may make work.
func (a *Agenda[K]) Expect() {
	now := time.Now()
	a.busy.Store(&now)
}

// Waits reports whether there was work of a kind at the last look, or may have been: it failed, or there was none yet.
func (a *Agenda[K]) Waits(work K) bool { return a.loops[work].waits.Load() }

// Run looks until ctx ends. While that fails, all loops look for themselves. It always returns nil.
func (a *Agenda[K]) Run(ctx context.Context) error {
	return Loop{Name: "looking for work", Interval: a.Interval, Log: a.Log, Pass: a.pass}.Run(ctx)
}

func (a *Agenda[K]) pass(ctx context.Context) (full bool, err error) {
	now := time.Now()
	if busy := a.busy.Load(); (busy == nil || now.Sub(*busy) > restless) && !a.isTime(now, a.looked, a.Idle) {
		return false, nil
	}
	a.looked = now
	waits, err := a.Look(ctx)
	if err != nil {
		for work := range a.loops {
			waits = append(waits, work)
		}
	}
	if len(waits) > 0 {
		a.Expect()
	}
	for work, l := range a.loops {
		l.waits.Store(slices.Contains(waits, work))
	}
	for _, work := range waits {
		l := a.loops[work]
		if l == nil || !a.isTime(now, l.woken, l.every) {
			continue
		}
		l.woken = now
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return false, err
}

// isTime reports whether so long has passed since, at a tick, which is not on time to the microsecond.
func (a *Agenda[K]) isTime(now, since time.Time, every time.Duration) bool {
	return now.Sub(since) >= every-a.Interval/2
}

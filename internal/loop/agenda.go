package loop

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// maxIdle is the time after which a loop on an agenda makes a pass even without work.
	maxIdle = time.Minute
	// After there was work, an agenda polls at its Interval for busyTime.
	busyTime = 2 * time.Second
)

// Agenda polls for the work of many loops in one query. So an idle program sends one query, and not one for each loop.
// K names the work of a loop.
type Agenda[K comparable] struct {
	Interval time.Duration // between two polls, while there is work or was until a moment ago
	Idle     time.Duration // else
	Log      *slog.Logger
	Poll     func(ctx context.Context) ([]K, error) // lists the work that there is

	loops  map[K]*listed
	polled time.Time
	busy   atomic.Pointer[time.Time] // when there was work; nil: there was none yet
}

// listed is a loop on an agenda.
type listed struct {
	every time.Duration // minimum time between two wakes while there is work
	woken time.Time
	wake  chan struct{}
	waits atomic.Bool
}

// Add returns a loop that makes its passes when there is work of a kind: at its own interval or the agenda's, whichever
// is longer. It also makes a pass when it begins, and after a failed one. Add all loops before the agenda runs.
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
	l.Interval = max(maxIdle, l.Interval)
	return l
}

// Expect makes the agenda poll at its Interval for a moment, because an event may bring work.
func (a *Agenda[K]) Expect() {
	now := time.Now()
	a.busy.Store(&now)
}

// HasWork reports whether there was work of a kind at the last poll. It also returns true before the first poll, and
// after a failed one.
func (a *Agenda[K]) HasWork(work K) bool { return a.loops[work].waits.Load() }

// Run polls until ctx ends. While polling fails, all loops run at their own intervals. It always returns nil.
func (a *Agenda[K]) Run(ctx context.Context) error {
	return Loop{Name: "poll for work", Interval: a.Interval, Log: a.Log, Pass: a.pass}.Run(ctx)
}

func (a *Agenda[K]) pass(ctx context.Context) (full bool, err error) {
	now := time.Now()
	if busy := a.busy.Load(); (busy == nil || now.Sub(*busy) > busyTime) && !a.isTime(now, a.polled, a.Idle) {
		return false, nil
	}
	a.polled = now
	waits, err := a.Poll(ctx)
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

// isTime reports whether a period has passed since a time. It allows for ticks that are not on time to the microsecond.
func (a *Agenda[K]) isTime(now, since time.Time, every time.Duration) bool {
	return now.Sub(since) >= every-a.Interval/2
}

package queue

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

const (
	tenth      = 100 * time.Millisecond
	soon       = time.Second           // for less than this, a lane is armed on each request
	beyond     = 5 * time.Second       // how long before a commit its time may have been compared with the horizon
	pause      = 20 * time.Millisecond // between two batches
	cooldown   = time.Second           // after a failed batch
	giveUp     = 5 * time.Second       // after its time, a moment that could not be armed is left to the lane's owner
	armTimeout = 5 * time.Second       // for one batch
)

type armer interface {
	Arm(ctx context.Context, wakeUps []push.WakeUp) error
}

// Waker arms lanes for single pushes that were booked, moved or deferred, because the lanes' owners may have counted
// their moments before. It gathers moments, works in the background, and retries failures until a while after their
// time: then the lane's owner finds the pushes overdue. It is safe for concurrent use.
type Waker struct {
	queue   armer
	lanes   []push.Lane
	horizon time.Duration
	log     *slog.Logger

	mu    sync.Mutex
	noted map[moment]note      // to be armed
	armed map[moment]time.Time // armed moments further ahead than soon; when their time comes by the clock of this process
	clean time.Time            // when past moments were last removed from armed
	idle  chan struct{}        // closed when nothing is noted any more; nil: nothing is
}

// moment is the end of a tenth of a second in a lane.
type moment struct {
	at   int64 // Unix milliseconds by Postgres' clock
	lane push.Lane
}

// note merges the requests for a moment.
type note struct {
	due time.Time // by the clock of this process
	far bool      // all requests came while it was further ahead than soon
}

// NewWaker returns a waker for lanes, as made by [push.Lanes]. Owners of lanes count the pushes that become due within
// the horizon.
func NewWaker(queue armer, lanes []push.Lane, horizon time.Duration, log *slog.Logger) *Waker {
	return &Waker{queue: queue, lanes: lanes, horizon: horizon, log: log, noted: map[moment]note{}, armed: map[moment]time.Time{}}
}

// Wake wakes a worker for a push of this recipient when it is due: at a time by Postgres' clock, which is in from now.
// It never blocks. The push must be committed, because a worker may read as soon as Wake is called. Pushes due after
// the horizon are left to the lane's owner, and so are moments that cannot be armed.
func (w *Waker) Wake(recipientKey int64, at time.Time, in time.Duration) {
	if in > w.horizon+beyond {
		return
	}
	now := time.Now()
	m, n := moment{lane: push.LaneOf(w.lanes, recipientKey)}, note{due: now, far: in > soon}
	if in > 0 {
		end := at.Add(tenth - 1).Truncate(tenth)
		m.at, n.due = end.UnixMilli(), now.Add(in+end.Sub(at))
	} else {
		m.at = at.Truncate(tenth).UnixMilli() // the worker searches from there on
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.far && now.Before(w.armed[m]) {
		return
	}
	if other, ok := w.noted[m]; ok {
		n.far = n.far && other.far
		if other.due.Before(n.due) {
			n.due = other.due
		}
	}
	w.noted[m] = n
	if w.idle == nil {
		w.idle = make(chan struct{})
		go w.run()
	}
}

// Flush waits until everything that was noted before is armed, or given up, or returns the error of ctx.
func (w *Waker) Flush(ctx context.Context) error {
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run arms the noted moments until there are none.
func (w *Waker) run() {
	for batch := w.take(); batch != nil; batch = w.take() {
		err := w.arm(batch)
		w.tried(batch, err)
		if err != nil {
			time.Sleep(cooldown)
		}
		time.Sleep(pause)
	}
}

// take returns the noted moments. Later notes belong to the next batch: a worker that this batch wakes may read before
// their pushes are committed.
func (w *Waker) take() map[moment]note {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.noted) == 0 {
		close(w.idle)
		w.idle = nil
		return nil
	}
	batch := w.noted
	w.noted = map[moment]note{}
	return batch
}

func (w *Waker) arm(batch map[moment]note) error {
	now := time.Now()
	wakeUps := make([]push.WakeUp, 0, len(batch))
	for m, n := range batch {
		wakeUps = append(wakeUps, push.WakeUp{Lane: m.lane, At: time.UnixMilli(m.at).UTC(), In: max(n.due.Sub(now), 0)})
	}
	slices.SortFunc(wakeUps, func(a, b push.WakeUp) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Lane.First, b.Lane.First))
	})
	ctx, cancel := context.WithTimeout(context.Background(), armTimeout)
	defer cancel()
	return w.queue.Arm(ctx, wakeUps)
}

// tried marks the moments of a batch as armed, which need not be armed again until they are due soon; or notes them
// again after an error.
func (w *Waker) tried(batch map[moment]note, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if err != nil {
		w.log.Warn("could not arm wake-ups; will retry", "moments", len(batch), "error", err)
		for m, n := range batch {
			if _, noted := w.noted[m]; !noted && now.Before(n.due.Add(giveUp)) {
				w.noted[m] = n
			}
		}
		return
	}
	for m, n := range batch {
		if n.far {
			w.armed[m] = n.due
			if w.noted[m].far { // a request that came during the arming
				delete(w.noted, m)
			}
		}
	}
	if now.Sub(w.clean) < time.Second {
		return
	}
	w.clean = now
	for m, due := range w.armed {
		if !now.Before(due) {
			delete(w.armed, m)
		}
	}
}

package delivery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// lane is this worker's work on one lane. One handler at a time claims due pushes, for all wake-ups that come
// meanwhile.
type lane struct {
	push.Lane

	mu      sync.Mutex
	running bool          // a handler is at work
	wakeUps []push.WakeUp // not processed yet

	helped time.Time // when this handler last woke other workers, for lack of slots
}

const (
	// maxClaiming lanes claim concurrently: while one waits for its commit, the next may read.
	maxClaiming = 2
	// maxClaims are claimed in one transaction.
	maxClaims = 256
	// Up to maxRecording times as many attempts as there are slots may wait to be recorded, because recording takes
	// longer than sending.
	maxRecording = 4
	// gatherTime is the time that a handler waits for more slots when few are free. Attempts are recorded in groups, so
	// slots become free in groups.
	gatherTime = 4 * time.Millisecond
	// drainTime is the time after which a handler checks for new wake-ups, and for skipped recipients that can be sent
	// to now.
	drainTime = time.Second
	// closingPause is the time after which a wake-up that a closing worker cannot process is delivered again.
	closingPause = 100 * time.Millisecond
)

// Handle sends due pushes in the lane of a wake-up, until nothing is left to do now. It returns when the last attempts
// have begun. If a handler is at work on the lane, Handle leaves the wake-up to it and returns at once. It fails if
// Postgres could not be reached, and the next handler processes the wake-ups; or with [push.ComeAgain] if the worker is
// closing.
func (w *Worker) Handle(ctx context.Context, wake push.WakeUp) error {
	l := w.lane(wake.Lane)
	if l == nil {
		return push.ComeAgain{In: closingPause}
	}
	defer w.handling.Done()
	if !l.begin(wake) {
		return nil
	}
	for wakeUps := l.take(); len(wakeUps) > 0; wakeUps = l.take() {
		now, err := w.drain(ctx, l, since(wakeUps))
		switch {
		case errors.Is(err, errMoreDue):
			l.giveBack(wakeUps, true)
		case err != nil:
			l.giveBack(wakeUps, false)
			return err
		default:
			w.handleLater(wakeUps, now)
		}
	}
	return nil
}

// lane begins the handling of a wake-up for a lane. It returns nil if the worker is closed.
func (w *Worker) lane(which push.Lane) *lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.handling.Add(1)
	l := w.lanes[which]
	if l == nil {
		l = &lane{Lane: which}
		w.lanes[which] = l
	}
	return l
}

// begin adds a wake-up, and reports whether its handler has to work on the lane.
func (l *lane) begin(wake push.WakeUp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeUps = append(l.wakeUps, wake)
	begins := !l.running
	l.running = true
	return begins
}

// take returns the unprocessed wake-ups, or ends the work if there are none.
func (l *lane) take() []push.WakeUp {
	l.mu.Lock()
	defer l.mu.Unlock()
	wakeUps := l.wakeUps
	l.wakeUps, l.running = nil, len(wakeUps) > 0
	return wakeUps
}

// giveBack leaves wake-ups to the next handler: one for each time suffices.
func (l *lane) giveBack(wakeUps []push.WakeUp, running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = running
	for _, wake := range wakeUps {
		if !slices.ContainsFunc(l.wakeUps, func(o push.WakeUp) bool { return o.At.Equal(wake.At) }) {
			l.wakeUps = append(l.wakeUps, wake)
		}
	}
}

// since returns the start of a search for some wake-ups: not before the first of them, where the index
// is full of ended pushes; zero: from the beginning.
func since(wakeUps []push.WakeUp) time.Time {
	first := slices.MinFunc(wakeUps, func(a, b push.WakeUp) int { return a.At.Compare(b.At) }).At
	if first.IsZero() {
		return first
	}
	return first.Add(-time.Second)
}

// handleLater handles early wake-ups again at their time. If the worker closes before, it wakes other workers for them.
func (w *Worker) handleLater(wakeUps []push.WakeUp, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wake := range wakeUps {
		in := wake.At.Sub(now)
		if wake = (push.WakeUp{Lane: wake.Lane, At: wake.At.UTC()}); in <= 0 || w.early[wake] != nil { // one for all parts
			continue
		}
		if w.closed {
			w.waker.Wake(int64(wake.Lane.First), wake.At, in)
			continue
		}
		w.processing.Add(1)
		w.early[wake] = &delay{until: time.Now().Add(in), timer: time.AfterFunc(in, func() {
			defer w.processing.Done()
			w.mu.Lock()
			delete(w.early, wake)
			w.mu.Unlock()
			w.process(wake)
		})}
	}
}

// process handles a wake-up that will not be repeated. If it fails, the lane's owner finds the pushes.
func (w *Worker) process(wake push.WakeUp) {
	if err := w.Handle(w.work, wake); err != nil && w.work.Err() == nil {
		w.log.Warn("could not process a lane; its owner will wake it again", "lane", wake.Lane.String(), "error", err)
	}
}

// errMoreDue: there is more to do in the lane, after a check for new wake-ups.
var errMoreDue = errors.New("more is due")

// drain claims a lane's pushes that became due since a time, and begins their attempts, until nothing is left that can
// be sent now, or the time is over: errMoreDue. It puts recipients that must wait for their channel into that channel's
// queue. It returns Postgres' time of the last search.
func (w *Worker) drain(ctx context.Context, l *lane, from time.Time) (now time.Time, err error) {
	if err = w.addFresh(ctx, l.Lane, from); err != nil {
		return now, err
	}
	r := round{w: w, lane: l, from: from, passed: w.delayedIn(l.Lane)}
	for began := time.Now(); !r.dry && time.Since(began) < drainTime; r.newest = !r.newest {
		if now, err = r.inTurn(ctx); err != nil {
			return now, err
		}
	}
	for _, q := range w.queues.all {
		if q.idle() { // otherwise an attempt that ends does it
			w.resume(q.channel)
		}
	}
	if err = w.feedWoken(ctx, l.Lane, from, r.asked); err == nil && !r.dry {
		err = errMoreDue
	}
	return now, err
}

// takeSlots waits for a slot, and takes all free slots, up to maxClaims. It takes none if ctx ends or the worker
// closes.
func (w *Worker) takeSlots(ctx context.Context) (n int) {
	if w.work.Err() != nil {
		return 0
	}
	select {
	case w.slots <- struct{}{}:
		n = 1
	case <-ctx.Done():
		return 0
	case <-w.work.Done():
		return 0
	}
	if cap(w.slots)-len(w.slots) < cap(w.slots)/4 {
		time.Sleep(gatherTime)
	}
	for ; n < maxClaims; n++ {
		select {
		case w.slots <- struct{}{}:
			continue
		default:
		}
		break
	}
	return n
}

// resume processes one of the lanes that wait for slots of a channel. It is called when an attempt through the channel
// has ended. The lanes take turns.
func (w *Worker) resume(channel string) {
	q := w.queues.get(channel)
	if q == nil {
		return
	}
	if _, waits := q.open(); waits {
		return
	}
	if l, ok := w.limited.next(channel); ok {
		w.processing.Go(func() { w.process(push.WakeUp{Lane: l}) })
	}
}

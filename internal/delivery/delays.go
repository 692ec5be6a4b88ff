package delivery

import (
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// delayKey is a delayed recipient, and the channel of its due push.
type delayKey struct {
	recipient int64
	channel   string
}

type delay struct {
	due   booking.Due // of a delayed recipient
	until time.Time
	timer *time.Timer
}

// settle handles a recipient again after a pause, or after a failure.
func (w *Worker) settle(d booking.Due, pause time.Duration, err error) {
	if err != nil {
		if pause = time.Second; w.work.Err() == nil {
			w.log.Warn("could not process a recipient; will retry", "error", err)
		}
	}
	if pause > 0 {
		w.delay(d, pause)
	}
}

// delay handles a recipient after a pause, unless the worker is closed.
func (w *Worker) delay(d booking.Due, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	until := time.Now().Add(pause)
	key := delayKey{d.RecipientKey, d.Channel}
	if delayed := w.delayed[key]; delayed != nil {
		if until.Before(delayed.until) && delayed.timer.Stop() {
			delayed.until = until
			delayed.timer.Reset(pause)
		}
		return
	}
	w.processing.Add(1)
	w.delayed[key] = &delay{d, until, time.AfterFunc(pause, func() { w.handleDelayed(d) })}
}

func (w *Worker) handleDelayed(d booking.Due) {
	defer w.processing.Done()
	w.mu.Lock()
	delete(w.delayed, delayKey{d.RecipientKey, d.Channel})
	w.mu.Unlock()
	w.serve(d, &permit{})
}

// delayedIn lists the recipients of a lane that are delayed.
func (w *Worker) delayedIn(l push.Lane) (recipientKeys []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.delayed {
		if shard := push.Shard(key.recipient); shard >= l.First && shard <= l.Last {
			recipientKeys = append(recipientKeys, key.recipient)
		}
	}
	return recipientKeys
}

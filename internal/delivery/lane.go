package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// lane is this worker's work on one lane. One handler at a time claims what is due, for all wake-ups that come
// meanwhile.
type lane struct {
	push.Lane

	mu      sync.Mutex
	running bool          // a handler is at work
	wakeUps []push.WakeUp // which it has not followed yet
	limited bool          // more was due than a channel had slots for: look again when an attempt ends
	helped  time.Time     // when other workers were woken for what this one has no slots for
}

const (
	// mostClaiming lanes claim at the same time: while one waits for its commit, the next may read.
	mostClaiming = 2
	// mostClaims are claimed in one transaction.
	mostClaims = 256
	// mostPassed are the recipients that a handler passes over because nothing can be sent to them now. It leaves the
	// rest of the lane to the next wake-up then.
	mostPassed = 4096
	// gatherTime is how long a handler waits for more slots when few are free. Attempts are recorded in groups, so slots
	// become free in groups.
	gatherTime = 4 * time.Millisecond
)

// Handle sends what is due in the lane of a wake-up, until nothing is left to do now. It returns when the last attempts
// have begun. While a handler is at work on the lane, it leaves the wake-up to that one and returns at once. It fails if
// Postgres could not be reached, or with [push.ComeAgain] if the worker is closing.
func (w *Worker) Handle(ctx context.Context, wake push.WakeUp) (err error) {
	l := w.lane(wake.Lane)
	if l == nil {
		return push.ComeAgain{In: time.Second}
	}
	defer w.handling.Done()
	if !l.begin(wake) {
		return nil
	}
	for wakeUps := l.take(); len(wakeUps) > 0; wakeUps = l.take() {
		now, failed := w.drain(ctx, l, since(wakeUps))
		if failed != nil {
			err = failed
			continue
		}
		for _, wake := range wakeUps {
			if wake.At.After(now) && !w.handleAt(wake, wake.At.Sub(now)) {
				err = push.ComeAgain{In: wake.At.Sub(now)}
			}
		}
	}
	return err
}

// since is from when on a lane is to be looked at for some wake-ups: what is due is not looked for before the first of
// them, for there the index is full of what has ended; zero: from the beginning.
func since(wakeUps []push.WakeUp) time.Time {
	first := slices.MinFunc(wakeUps, func(a, b push.WakeUp) int { return a.At.Compare(b.At) }).At
	if first.IsZero() {
		return first
	}
	return first.Add(-time.Second)
}

// lane begins the handling of a wake-up for a lane, unless the worker is closed: nil.
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

// begin notes a wake-up, and reports whether its handler has to work on the lane.
func (l *lane) begin(wake push.WakeUp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeUps = append(l.wakeUps, wake)
	begins := !l.running
	l.running = true
	return begins
}

// take returns the wake-ups that came since, or ends the work.
func (l *lane) take() []push.WakeUp {
	l.mu.Lock()
	defer l.mu.Unlock()
	wakeUps := l.wakeUps
	l.wakeUps, l.running = nil, len(wakeUps) > 0
	return wakeUps
}

// handleAt follows a wake-up that came too early when its time has come, unless the worker is closed.
func (w *Worker) handleAt(wake push.WakeUp, in time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	wake = push.WakeUp{Lane: wake.Lane, At: wake.At.UTC()} // one for all parts
	if w.early[wake] == nil {
		w.looking.Add(1)
		w.early[wake] = time.AfterFunc(in, func() {
			defer w.looking.Done()
			w.mu.Lock()
			delete(w.early, wake)
			w.mu.Unlock()
			w.look(wake)
		})
	}
	return true
}

// look handles a wake-up that nobody repeats. What it fails to send is found by the lane's owner.
func (w *Worker) look(wake push.WakeUp) {
	if err := w.Handle(w.work, wake); err != nil && w.work.Err() == nil {
		w.log.Warn("a lane was not looked at; its owner wakes it again", "lane", wake.Lane.String(), "error", err)
	}
}

// drain claims what has been due in a lane since a time, and begins the attempts, until nothing is left that can be sent
// now. It returns what time it was, by Postgres' clock, when it looked last.
func (w *Worker) drain(ctx context.Context, l *lane, from time.Time) (now time.Time, err error) {
	passed := w.delayedIn(l.Lane)
	for len(passed) < mostPassed {
		round := round{w: w, lane: l, from: from, passed: passed}
		if now, err = round.inTurn(ctx); err != nil || round.dry {
			return now, err
		}
		passed = round.passed
	}
	return now, nil
}

// inTurn runs the round while few other lanes claim: so there are more slots for each, and larger transactions.
func (r *round) inTurn(ctx context.Context) (now time.Time, err error) {
	r.w.claiming <- struct{}{}
	defer func() { <-r.w.claiming }()
	if r.slots = r.w.takeSlots(ctx); r.slots == 0 {
		return now, push.ComeAgain{In: time.Second}
	}
	return r.run(ctx)
}

// takeSlots waits for a slot, and takes as many as are free then, up to mostClaims. It takes none if ctx ends or the
// worker closes.
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
	for ; n < mostClaims; n++ {
		select {
		case w.slots <- struct{}{}:
			continue
		default:
		}
		break
	}
	return n
}

// round is one look at a lane, with the claims that follow from it.
type round struct {
	w      *Worker
	lane   *lane
	from   time.Time
	slots  int     // that it may use; it gives back what it does not need
	passed []int64 // recipients to which nothing can be sent now
	dry    bool    // nothing is left to do
}

func (r *round) run(ctx context.Context) (now time.Time, err error) {
	defer func() { r.w.freeSlots(r.slots) }()
	open, wanted := r.w.queues.open(r.slots), r.slots
	due, now, err := r.w.store.Due(ctx, booking.DueOrder{Lane: r.lane.Lane, Channels: open, Without: r.passed, Most: wanted, From: r.from})
	if err != nil {
		return now, err
	}
	limited := r.limited(open, due)
	r.dry = len(due) < wanted
	if due = r.occupy(due, &limited); len(due) > 0 {
		err = r.claim(ctx, due)
	}
	r.lane.note(limited)
	if !r.dry {
		r.help(due, now)
	}
	return now, err
}

// limited reports whether more may be due than a channel has slots for.
func (r *round) limited(open []booking.DueChannel, due []booking.Due) bool {
	count := map[string]int{}
	for _, d := range due {
		count[d.Channel]++
	}
	for _, c := range open {
		if c.Most < r.slots && count[c.Name] >= c.Most {
			return true
		}
	}
	return false
}

// occupy takes a slot of its channel for each recipient, and leaves out those for which there is none.
func (r *round) occupy(due []booking.Due, limited *bool) []booking.Due {
	taken := due[:0]
	seen := make(map[int64]bool, len(due))
	for _, d := range due {
		if seen[d.RecipientKey] {
			continue
		}
		if !r.w.queues.byName[d.Channel].tryOccupy() {
			*limited = true
			continue
		}
		seen[d.RecipientKey] = true
		taken = append(taken, d)
	}
	return taken
}

// claim claims for recipients, and begins the attempts.
func (r *round) claim(ctx context.Context, due []booking.Due) error {
	orders := make([]booking.ClaimOrder, len(due))
	without := r.w.queues.blocked()
	for i, d := range due {
		orders[i] = booking.ClaimOrder{RecipientKey: d.RecipientKey, Policy: r.w.cfg.Policy, Lease: r.w.cfg.Lease, Without: without}
	}
	began := time.Now() // before the leases begin
	claims, err := r.w.store.ClaimAll(ctx, orders)
	if err != nil {
		for _, d := range due {
			r.w.queues.count(d.Channel, -1)
		}
		return err
	}
	for i, c := range claims {
		r.follow(ctx, due[i], c, began)
	}
	return nil
}

// follow does what a claim for a recipient says.
func (r *round) follow(ctx context.Context, d booking.Due, c booking.Claim, began time.Time) {
	if c.Outcome == booking.Claimed {
		if c.Push.Channel != d.Channel {
			r.w.queues.count(d.Channel, -1)
			r.w.queues.count(c.Push.Channel, 1)
		}
		r.slots--
		r.w.begin(r.lane, d, c, began)
		return
	}
	r.w.queues.count(d.Channel, -1)
	switch c.Outcome {
	case booking.Nothing:
		r.passed = append(r.passed, d.RecipientKey)
	case booking.Wait:
		r.passed = append(r.passed, d.RecipientKey)
		r.w.delay(d, c.Wait)
	case booking.Again:
		r.passed = append(r.passed, d.RecipientKey)
		r.w.delay(d, booking.LockWait)
	default:
		r.w.ended(ctx, d, c)
	}
}

// begin makes an attempt, and whatever follows for the recipient. It uses one slot of the worker and one of the channel.
func (w *Worker) begin(l *lane, d booking.Due, c booking.Claim, began time.Time) {
	w.attempts.Go(func() {
		more, err := w.attempt(w.work, c, began)
		w.queues.count(c.Push.Channel, -1)
		var pause time.Duration
		if err == nil && more {
			pause, err = w.pass(w.work, d, &permit{})
		}
		w.freeSlots(1)
		w.settle(d, pause, err)
		if l.resumes() {
			w.look(push.WakeUp{Lane: l.Lane})
		}
	})
}

// note says whether more is due than channels have slots for.
func (l *lane) note(limited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limited = limited
}

// resumes reports, once, that a slot may have become free for what was left.
func (l *lane) resumes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limited := l.limited
	l.limited = false
	return limited
}

// help wakes other workers, now and then, while more is due than this one has slots for.
func (r *round) help(due []booking.Due, now time.Time) {
	if len(due) == 0 || len(r.w.slots) < cap(r.w.slots) || time.Since(r.lane.helped) < time.Second {
		return
	}
	r.lane.helped = time.Now()
	r.w.waker.Wake(due[0].RecipientKey, due[0].At, due[0].At.Sub(now))
}

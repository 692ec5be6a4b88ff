package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// round is a series of searches in a lane, with the claims that follow each.
type round struct {
	w      *Worker
	lane   *lane
	from   time.Time
	newest bool                 // this search begins with the newest due pushes
	passed []int64              // recipients without a push to send now, or with one just sent
	full   []string             // channels whose slots are all in use
	asked  []booking.DueChannel // channels that took pushes at once in this search, full or not
	short  []string             // channels whose slots others took meanwhile
	slots  int                  // slots for this search; unneeded ones are returned
	dry    bool                 // nothing is left to do
}

// inTurn searches while few other lanes claim, so that each has more slots, and larger transactions.
func (r *round) inTurn(ctx context.Context) (now time.Time, err error) {
	r.w.claiming <- struct{}{}
	defer func() { <-r.w.claiming }()
	if r.slots = r.w.takeSlots(ctx); r.slots == 0 {
		return now, push.ComeAgain{In: closingPause}
	}
	defer func() { r.w.freeSlots(r.slots) }()
	return r.search(ctx)
}

// search claims as many pushes as there are slots. In a backlog, every other search begins with the newest due pushes,
// so that the backlog of one tenant does not make another's new pushes late.
func (r *round) search(ctx context.Context) (now time.Time, err error) {
	open := r.w.queues.open(r.slots)
	r.asked, r.short = slices.Clone(open), nil
	open = slices.DeleteFunc(open, func(c booking.DueChannel) bool { return slices.Contains(r.full, c.Name) })
	wanted := r.slots
	due, now, err := r.w.store.Due(ctx, booking.DueOrder{
		Lane: r.lane.Lane, Channels: open, Without: r.passed, Most: wanted, From: r.from, Newest: r.newest,
	})
	if err != nil {
		return now, err
	}
	r.dry = len(due) < wanted
	found := due
	if due = r.occupy(slices.Clone(due)); len(due) > 0 {
		if err := r.claim(ctx, due); err != nil {
			return now, err
		}
	}
	r.noteLimits(open, found, wanted)
	if !r.dry {
		r.help(due, now)
	}
	return now, nil
}

// noteLimits excludes channels from the rest of the drain if more may be due than they have slots for, or if other
// lanes wait for their slots, too. The lane is processed again when an attempt through such a channel ends.
func (r *round) noteLimits(open []booking.DueChannel, due []booking.Due, wanted int) {
	count := map[string]int{}
	for _, d := range due {
		count[d.Channel]++
	}
	for _, c := range open {
		queue := r.w.queues.byName[c.Name]
		left, _ := queue.open()
		if !slices.Contains(r.short, c.Name) && (count[c.Name] < c.Most || left > 0 && c.Most == wanted && !r.w.limited.others(c.Name, r.lane.Lane)) {
			continue
		}
		r.w.limited.add(c.Name, r.lane.Lane)
		if queue.idle() { // no attempt will end: the due pushes could not be claimed
			r.w.limited.remove(c.Name, r.lane.Lane)
			r.dry = false
			continue
		}
		r.full = append(r.full, c.Name)
	}
}

// occupy occupies a channel's slot for each recipient, and drops recipients without one.
func (r *round) occupy(due []booking.Due) []booking.Due {
	taken := due[:0]
	seen := make(map[int64]bool, len(due))
	for _, d := range due {
		switch {
		case seen[d.RecipientKey]:
		case r.w.queues.byName[d.Channel].tryOccupy():
			seen[d.RecipientKey] = true
			taken = append(taken, d)
		default:
			r.short = append(r.short, d.Channel)
		}
	}
	return taken
}

// claim claims the pushes of recipients, each for the channel whose slot it occupies, and begins the attempts.
func (r *round) claim(ctx context.Context, due []booking.Due) error {
	orders := make([]booking.ClaimOrder, len(due))
	for i, d := range due {
		orders[i] = booking.ClaimOrder{RecipientKey: d.RecipientKey, Policy: r.w.cfg.Policy, Lease: r.w.cfg.Lease, Channel: d.Channel}
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

// follow executes the outcome of a claim for a recipient.
func (r *round) follow(ctx context.Context, d booking.Due, c booking.Claim, began time.Time) {
	if c.Outcome != booking.Claimed {
		r.w.queues.count(d.Channel, -1)
	}
	switch c.Outcome {
	case booking.Claimed:
		r.slots--
		r.w.begin(d, c, began)
	case booking.Nothing:
	case booking.Wait:
		r.w.delay(d, c.Wait)
	case booking.Again:
		r.w.delay(d, booking.LockWait)
	default: // the recipient's next push may be due
		r.w.ended(ctx, d, c)
		r.dry = false
		return
	}
	r.passed = append(r.passed, d.RecipientKey)
}

// begin makes an attempt in occupied slots, and then serves the recipient's next pushes.
func (w *Worker) begin(d booking.Due, c booking.Claim, began time.Time) {
	w.attempts.Go(func() {
		if more, err := w.attempt(w.work, c, began); err == nil && more {
			w.serve(d, &permit{})
		} else {
			w.settle(d, 0, err)
		}
	})
}

// help wakes other workers, at most once a second, while more pushes are due than this worker has slots for.
func (r *round) help(due []booking.Due, now time.Time) {
	if len(due) == 0 || len(r.w.slots) < cap(r.w.slots) || time.Since(r.lane.helped) < time.Second {
		return
	}
	r.lane.helped = time.Now()
	r.w.waker.Wake(due[0].RecipientKey, due[0].At, due[0].At.Sub(now))
}

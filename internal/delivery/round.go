package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// round is one look at a lane after another, with the claims that follow from each.
type round struct {
	w      *Worker
	lane   *lane
	from   time.Time
	newest bool                 // this look begins with what became due last
	passed []int64              // recipients to which nothing can be sent now, or was just sent
	full   []string             // channels that have no slots for what is due
	asked  []booking.DueChannel // those that took pushes at once in this look, full or not
	short  []string             // channels whose slots others took meanwhile
	slots  int                  // that this look may use; it gives back what it does not need
	dry    bool                 // nothing is left to do
}

// inTurn looks while few other lanes claim: so there are more slots for each, and larger transactions.
func (r *round) inTurn(ctx context.Context) (now time.Time, err error) {
	r.w.claiming <- struct{}{}
	defer func() { <-r.w.claiming }()
	if r.slots = r.w.takeSlots(ctx); r.slots == 0 {
		return now, push.ComeAgain{In: closingPause}
	}
	defer func() { r.w.freeSlots(r.slots) }()
	return r.look(ctx)
}

// look claims as many pushes as there are slots. In a backlog, every other look begins with what became due last: so the
// backlog of one tenant does not make another's new pushes late.
func (r *round) look(ctx context.Context) (now time.Time, err error) {
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

// noteLimits leaves channels out of the rest of the drain for which more may be due than they have slots for, or than
// they have while other lanes wait for their slots, too. The lane is looked at again when an attempt through such a
// channel ends.
func (r *round) noteLimits(open []booking.DueChannel, due []booking.Due, wanted int) {
	count := map[string]int{}
	for _, d := range due {
		count[d.Channel]++
	}
	for _, c := range open {
		queue := r.w.queues.byName[c.Name]
		left, _ := queue.open()
		if !slices.Contains(r.short, c.Name) && (count[c.Name] < c.Most || left > 0 && c.Most == wanted && !r.w.limitsOthers(c.Name, r.lane.Lane)) {
			continue
		}
		r.w.limit(c.Name, r.lane.Lane)
		if queue.idle() { // nothing will end: what was due could not be claimed
			r.w.unlimit(c.Name, r.lane.Lane)
			r.dry = false
			continue
		}
		r.full = append(r.full, c.Name)
	}
}

// occupy takes a slot of its channel for each recipient, and leaves out those for which there is none.
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

// claim claims for recipients, each for the channel of which it has a slot, and begins the attempts.
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

// follow does what a claim for a recipient says.
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

// begin makes an attempt in slots that are taken, and whatever follows for the recipient.
func (w *Worker) begin(d booking.Due, c booking.Claim, began time.Time) {
	w.attempts.Go(func() {
		if more, err := w.attempt(w.work, c, began); err == nil && more {
			w.serve(d, &permit{})
		} else {
			w.settle(d, 0, err)
		}
	})
}

// help wakes other workers, now and then, while more is due than this one has slots for.
func (r *round) help(due []booking.Due, now time.Time) {
	if len(due) == 0 || len(r.w.slots) < cap(r.w.slots) || time.Since(r.lane.helped) < time.Second {
		return
	}
	r.lane.helped = time.Now()
	r.w.waker.Wake(due[0].RecipientKey, due[0].At, due[0].At.Sub(now))
}

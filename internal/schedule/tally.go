package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// tally knows how much tenants have under their caps. Postgres counts; the
// tally believes a count for a moment, in which it adds what was booked here:
// the fewer places it left the shorter, and so briefly that no tenant can have
// used them up elsewhere. An order holds the places that it may need while it is
// booked, so that requests at the same moment can not have the same place. Where
// too few are left, it waits until nobody else holds any, and Postgres counts
// again. Only bookings of other processes at the same moment overshoot a cap.
type tally struct {
	store counter
	now   func() time.Time

	mu     sync.Mutex
	places map[subject]*places
}

// counter is what the tally asks.
type counter interface {
	Pending(ctx context.Context, tenant uuid.UUID, most int) (int, error)
	Recipients(ctx context.Context, tenant uuid.UUID, day store.Day, most int) (int, error)
}

// subject is what is counted: a tenant's pending pushes, or its recipients on a
// day.
type subject struct {
	tenant  uuid.UUID
	pending bool
	day     store.Day // unless pending
}

// places is what the tally knows of a subject, under its lock.
type places struct {
	door  chan struct{} // full while someone inside counts, waits, or takes places; others queue
	freed chan struct{} // tells the one inside that places are not held any more
	users int           // who must find it again

	limit, counted int       // what Postgres said, one beyond the limit at most
	since          int       // booked here since that count began
	held           int       // of orders that are being booked
	began, until   time.Time // the count, and when it is not believed any more
	stale          bool      // a place was given back since the count began
}

// used is at least what was used when Postgres counted and what this process
// may have booked since.
func (p *places) used() int { return p.counted + p.since + p.held }

const (
	// A count is believed so long for each place that it left, a second at most.
	// Nobody books twenty thousand pushes a second.
	perPlace = 50 * time.Microsecond

	// One tenant's counting must not be what Postgres is busy with. Where a count
	// left no place it is believed so long for each that is used, unless one is
	// given back here; and under a larger cap, costShare times as long as it took.
	perUsed   = 20 * time.Microsecond
	largeCap  = 10_000
	costShare = 10

	maxCounts = 10_000 // that are remembered
)

func newTally(c counter, now func() time.Time) *tally {
	return &tally{store: c, now: now, places: map[subject]*places{}}
}

// hold is the places that an order holds while it is booked. A nil one is of a
// tenant without caps.
type hold struct {
	*store.Allowance
	tally  *tally
	tenant uuid.UUID
	took   map[subject]int
}

// hold takes places for an order of so many pushes, or as many as are left: on
// each of the days as many as may land there. If there are no caps it asks
// nobody. A hold has to be settled.
func (t *tally) hold(ctx context.Context, tenant uuid.UUID, caps push.Caps, pushes int, days map[store.Day]int) (*hold, error) {
	if caps == (push.Caps{}) || pushes == 0 {
		return nil, nil
	}
	h := &hold{&store.Allowance{Caps: caps, Days: map[store.Day]int{}}, t, tenant, map[subject]int{}}
	var err error
	if caps.PendingPushes > 0 {
		h.Pending, err = h.take(ctx, subject{tenant: tenant, pending: true}, caps.PendingPushes, pushes)
	}
	if caps.RecipientsPerDay > 0 {
		for _, day := range slices.Sorted(maps.Keys(days)) { // in one order for all, else two could wait for each other
			if err == nil {
				h.Days[day], err = h.take(ctx, subject{tenant: tenant, day: day}, caps.RecipientsPerDay, days[day])
			}
		}
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// take takes n places of a limit, or what is left, and says how many were used
// before.
func (h *hold) take(ctx context.Context, s subject, limit, n int) (used int, err error) {
	arrived, p := h.tally.now(), h.tally.enter(s)
	h.took[s] = 0
	select {
	case p.door <- struct{}{}:
		defer func() { <-p.door }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := h.tally.makeSure(ctx, s, p, limit, n, arrived); err != nil {
		return 0, err
	}
	h.tally.mu.Lock()
	defer h.tally.mu.Unlock()
	if p.counted >= limit {
		return p.counted, nil // what is held may be among them
	}
	used = p.used()
	h.took[s] = max(0, min(n, limit-used))
	p.held += h.took[s]
	return used, nil
}

// enter returns the places of a subject, which are kept until it is left.
func (t *tally) enter(s subject) *places {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.places[s]
	if p == nil {
		if now := t.now(); len(t.places) >= maxCounts {
			maps.DeleteFunc(t.places, func(_ subject, p *places) bool { return p.users == 0 && !now.Before(p.until) })
		}
		p = &places{door: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
		t.places[s] = p
	}
	p.users++
	return p
}

// makeSure returns when it is known whether n places are left for one who has
// arrived at that time and is inside now.
func (t *tally) makeSure(ctx context.Context, s subject, p *places, limit, n int, arrived time.Time) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for fresh := false; ; {
		fresh = fresh || p.began.After(arrived) // who waited outside shares the count of whoever was inside
		switch {
		case p.limit != limit, !fresh && !t.now().Before(p.until):
			fresh, err = true, t.count(ctx, s, p, limit)
		case p.counted >= limit, p.used()+n <= limit:
			return nil
		case p.held > 0:
			t.mu.Unlock()
			select {
			case <-p.freed:
			case <-ctx.Done():
				err = ctx.Err()
			}
			t.mu.Lock()
		case limit > largeCap, fresh && p.since == 0:
			return nil
		default:
			fresh, err = true, t.count(ctx, s, p, limit)
		}
		if err != nil {
			return err
		}
	}
}

// count has Postgres count, and lets go of the lock meanwhile. What is held then
// may be counted twice, but never not at all.
func (t *tally) count(ctx context.Context, s subject, p *places, limit int) (err error) {
	p.limit, p.since, p.stale, p.began = 0, 0, false, t.now()
	t.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // others wait for it, too
	var counted int
	if s.pending {
		counted, err = t.store.Pending(ctx, s.tenant, limit+1)
	} else {
		counted, err = t.store.Recipients(ctx, s.tenant, s.day, limit+1)
	}
	now := t.now()
	t.mu.Lock()
	if err != nil {
		return fmt.Errorf("count under a cap: %w", err)
	}
	believed := min(time.Duration(limit-counted)*perPlace, time.Second)
	if counted >= limit {
		believed = time.Duration(counted) * perUsed
	}
	if limit > largeCap {
		believed = max(believed, costShare*now.Sub(p.began))
	}
	p.limit, p.counted, p.until = limit, counted, p.began.Add(believed)
	if p.stale {
		p.until = time.Time{}
	}
	return nil
}

// settle gives back what was held, all but what these decisions have used.
func (h *hold) settle(decisions []store.Decision) {
	if h == nil {
		return
	}
	booked := map[subject]int{}
	for _, v := range decisions {
		if v.Outcome == store.Booked {
			booked[subject{tenant: h.tenant, pending: true}]++
		}
		if v.Newcomer {
			booked[subject{tenant: h.tenant, day: store.DayOf(v.Push.SendAt)}]++
		}
	}
	h.leave(booked)
}

// release gives back all that was held.
func (h *hold) release() { h.settle(nil) }

// doubt ends a hold of which nobody knows what was booked: it may be all.
func (h *hold) doubt() {
	if h != nil {
		h.leave(h.took)
	}
}

func (h *hold) leave(booked map[subject]int) {
	h.tally.mu.Lock()
	defer h.tally.mu.Unlock()
	for s, n := range h.took {
		p := h.tally.places[s]
		p.held -= n
		p.since += booked[s]
		p.users--
		select {
		case p.freed <- struct{}{}:
		default: // it was told before
		}
	}
}

// forget has the tally ask again about a tenant that gave a place back.
func (t *tally) forget(tenant uuid.UUID, day store.Day) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range []subject{{tenant: tenant, pending: true}, {tenant: tenant, day: day}} {
		if p := t.places[s]; p != nil {
			p.stale, p.until = true, time.Time{}
		}
	}
}

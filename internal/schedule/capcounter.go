package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// capCounter tracks how much of their caps tenants use. Postgres counts. The counter trusts a count for a short time,
// and adds what this process booked since. The time gets shorter as less room is left, so that other processes cannot
// use up the rest before it ends. Before an order is booked, it reserves all room that it could need, so that two
// concurrent requests do not get the same room. If too little is left, the order waits until no other reservation is
// open, and Postgres counts again. Only concurrent bookings of other processes can exceed a cap.
type capCounter struct {
	store usageStore
	now   func() time.Time

	mu     sync.Mutex
	counts map[subject]*capCount
}

// usageStore counts in Postgres, and stops counting at most.
type usageStore interface {
	Pending(ctx context.Context, tenant uuid.UUID, most int) (int, error)
	Recipients(ctx context.Context, tenant uuid.UUID, day booking.Day, most int) (int, error)
}

// subject is one counted quantity: a tenant's pending pushes, or its recipients of one day.
type subject struct {
	tenant  uuid.UUID
	pending bool
	day     booking.Day // unless pending
}

// capCount is the known usage of a subject. The counter's mutex protects it.
type capCount struct {
	permit chan struct{} // holds one element while an order counts, waits or takes room; the others queue
	freed  chan struct{} // signals to that order that a reservation has ended
	users  int           // number of orders that use this count; it stays in memory while there are any

	limit, counted int       // the count in Postgres, at most one above the limit
	since          int       // room used by this process since that count began
	reserved       int       // room reserved by orders that are being booked
	began, until   time.Time // when the count began, and until when it is trusted
	stale          bool      // room was given back since the count began
}

// used returns an upper bound of the usage: the count of Postgres plus what this process may have booked since.
func (n *capCount) used() int { return n.counted + n.since + n.reserved }

const (
	// A count is trusted for perSlot per place that is left, up to a second. No tenant books twenty
	// thousand pushes a second.
	perSlot = 50 * time.Microsecond

	// Counting for one tenant must stay cheap for Postgres. A count that leaves no room is trusted for perUsed per used
	// place, unless this process gives one back. A count of a large cap is trusted for costShare times its own
	// duration.
	perUsed   = 20 * time.Microsecond
	largeCap  = 10_000
	costShare = 10

	maxCounts = 10_000 // counts kept in memory
)

func newCapCounter(st usageStore, now func() time.Time) *capCounter {
	return &capCounter{store: st, now: now, counts: map[subject]*capCount{}}
}

// reservation is the room that an order may use while it is booked, and the usage without it. End it with settle,
// release or doubt. It is nil for a tenant without caps.
type reservation struct {
	*booking.CapUsage
	counter *capCounter
	tenant  uuid.UUID
	room    map[subject]int
}

// reserve reserves room for an order of pushes, and on each of the days room for the given number of recipients. If
// less is left, it reserves the rest.
func (c *capCounter) reserve(ctx context.Context, tenant uuid.UUID, caps push.Caps, pushes int, days map[booking.Day]int) (*reservation, error) {
	if caps == (push.Caps{}) || pushes == 0 {
		return nil, nil
	}
	r := &reservation{&booking.CapUsage{Caps: caps, Days: map[booking.Day]int{}}, c, tenant, map[subject]int{}}
	var err error
	if caps.PendingPushes > 0 {
		r.Pending, err = r.take(ctx, subject{tenant: tenant, pending: true}, caps.PendingPushes, pushes)
	}
	if caps.RecipientsPerDay > 0 {
		for _, day := range slices.Sorted(maps.Keys(days)) { // all orders take days in this order, so that no two wait for each other
			if err == nil {
				r.Days[day], err = r.take(ctx, subject{tenant: tenant, day: day}, caps.RecipientsPerDay, days[day])
			}
		}
	}
	if err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

// take takes n places of a limit, or those that are left, and returns the usage before.
func (r *reservation) take(ctx context.Context, s subject, limit, n int) (used int, err error) {
	arrived, count := r.counter.now(), r.counter.enter(s)
	r.room[s] = 0
	select {
	case count.permit <- struct{}{}:
		defer func() { <-count.permit }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := r.counter.makeSure(ctx, s, count, limit, n, arrived); err != nil {
		return 0, err
	}
	r.counter.mu.Lock()
	defer r.counter.mu.Unlock()
	if count.counted >= limit {
		return count.counted, nil // the count may include reserved room
	}
	used = count.used()
	r.room[s] = max(0, min(n, limit-used))
	count.reserved += r.room[s]
	return used, nil
}

// enter returns the count of a subject, and keeps it in memory until the reservation ends.
func (c *capCounter) enter(s subject) *capCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.counts[s]
	if count == nil {
		if now := c.now(); len(c.counts) >= maxCounts {
			maps.DeleteFunc(c.counts, func(_ subject, n *capCount) bool { return n.users == 0 && !now.Before(n.until) })
		}
		count = &capCount{permit: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
		c.counts[s] = count
	}
	count.users++
	return count
}

// makeSure returns once it is known whether n places are left for an order. The order arrived at the given time and
// holds count.permit.
func (c *capCounter) makeSure(ctx context.Context, s subject, count *capCount, limit, n int, arrived time.Time) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for fresh := false; ; {
		fresh = fresh || count.began.After(arrived) // queued orders share the count of the order before them
		switch {
		case count.limit != limit, !fresh && !c.now().Before(count.until):
			fresh, err = true, c.count(ctx, s, count, limit)
		case count.counted >= limit, count.used()+n <= limit:
			return nil
		case count.reserved > 0:
			c.mu.Unlock()
			select {
			case <-count.freed:
			case <-ctx.Done():
				err = ctx.Err()
			}
			c.mu.Lock()
		case limit > largeCap, fresh && count.since == 0:
			return nil
		default:
			fresh, err = true, c.count(ctx, s, count, limit)
		}
		if err != nil {
			return err
		}
	}
}

// count counts in Postgres, and releases the mutex meanwhile. Room that is reserved then may be counted twice, but is
// never missed.
func (c *capCounter) count(ctx context.Context, s subject, count *capCount, limit int) (err error) {
	count.limit, count.since, count.stale, count.began = 0, 0, false, c.now()
	c.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // other orders wait for this count, too
	var counted int
	if s.pending {
		counted, err = c.store.Pending(ctx, s.tenant, limit+1)
	} else {
		counted, err = c.store.Recipients(ctx, s.tenant, s.day, limit+1)
	}
	now := c.now()
	c.mu.Lock()
	if err != nil {
		return fmt.Errorf("count under a cap: %w", err)
	}
	trusted := min(time.Duration(limit-counted)*perSlot, time.Second)
	if counted >= limit {
		trusted = time.Duration(counted) * perUsed
	}
	if limit > largeCap {
		trusted = max(trusted, costShare*now.Sub(count.began))
	}
	count.limit, count.counted, count.until = limit, counted, count.began.Add(trusted)
	if count.stale {
		count.until = time.Time{}
	}
	return nil
}

// settle ends a reservation. The room of the pushes that the decisions booked stays used.
func (r *reservation) settle(decisions []booking.Decision) {
	if r == nil {
		return
	}
	used := map[subject]int{}
	for _, d := range decisions {
		if d.Outcome == booking.Booked {
			used[subject{tenant: r.tenant, pending: true}]++
		}
		if d.NewRecipientOfDay {
			used[subject{tenant: r.tenant, day: booking.DayOf(d.Push.SendAt)}]++
		}
	}
	r.end(used)
}

// release ends a reservation that was not used.
func (r *reservation) release() { r.settle(nil) }

// doubt ends a reservation whose room may have been used.
func (r *reservation) doubt() {
	if r != nil {
		r.end(r.room)
	}
}

func (r *reservation) end(used map[subject]int) {
	r.counter.mu.Lock()
	defer r.counter.mu.Unlock()
	for s, n := range r.room {
		count := r.counter.counts[s]
		count.reserved -= n
		count.since += used[s]
		count.users--
		select {
		case count.freed <- struct{}{}:
		default: // already signaled
		}
	}
}

// forget invalidates the counts of a tenant that gave room back.
func (c *capCounter) forget(tenant uuid.UUID, day booking.Day) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []subject{{tenant: tenant, pending: true}, {tenant: tenant, day: day}} {
		if count := c.counts[s]; count != nil {
			count.stale, count.until = true, time.Time{}
		}
	}
}

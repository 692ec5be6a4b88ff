package pushes

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// whole reports whether the order must be decided in one transaction, even if that touches several shards.
func whole(o booking.Order) bool {
	return o.Atomic || o.CapUsage != nil || slices.ContainsFunc(o.Drafts, func(d booking.Draft) bool { return d.Push.IdempotencyID != uuid.Nil })
}

// ownBookings groups orders of one tenant into transactions: batches, and orders that may take too long for a transaction
// that tenants share. A tenant with slow transactions, which read much or wait for a lock, occupies only its part of the
// turns, so no other tenant waits for it.
type ownBookings struct {
	run     func(ctx context.Context, orders []booking.Order) ([][]booking.Decision, error)
	observe func(int)
	lanes   int
	turns   *bulkhead.Bulkhead[uuid.UUID]

	mu     sync.Mutex
	groups map[ownKey]*ownGroup
}

// ownKey identifies orders that share transactions, by tenant and lane. Orders for several lanes have lane -1.
type ownKey struct {
	tenant uuid.UUID
	lane   int
}

type ownGroup struct {
	groupcommit.Group[booking.Order, []booking.Decision]
	users int
}

// How many of these transactions run at a time, in total and of one tenant. While several tenants book, each transaction
// counts twice, so that a single tenant keeps only one processor of Postgres and of this process busy.
const (
	ownTransactions    = 8
	TenantTransactions = 2
)

// lane returns the number of the lane that all drafts are for, or -1 if they are for several.
func (o *ownBookings) lane(ord booking.Order) int {
	lane := pg.LaneOf(recipientKey(ord), o.lanes)
	if o.lanes > 1 && slices.ContainsFunc(ord.Drafts, func(d booking.Draft) bool { return pg.LaneOf(keyOf(&d), o.lanes) != lane }) {
		return -1
	}
	return lane
}

// book books an order in one transaction with concurrent orders of its tenant and lane.
func (o *ownBookings) book(ord booking.Order) ([]booking.Decision, error) {
	key := ownKey{ord.Tenant(), o.lane(ord)}
	o.mu.Lock()
	g := o.groups[key]
	if g == nil {
		g = &ownGroup{Group: groupcommit.Group[booking.Order, []booking.Decision]{
			Run: o.run, Weight: weight, MaxWeight: 1000, Parallel: TenantTransactions, Alone: pg.MaybeOne, Observe: o.observe,
		}}
		o.groups[key] = g
	}
	g.users++
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(o.groups, key)
		}
	}()
	return g.Do(ord)
}

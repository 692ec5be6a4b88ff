package pushes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/push"
)

// ownBookings gathers orders of one tenant at a time: batches, and whatever may take longer than a transaction that
// tenants share must. A tenant whose transactions are slow, because they read much or wait for a lock, has a part of
// the turns, and no other waits for it.
type ownBookings struct {
	run     func(ctx context.Context, orders []Order) ([][]booking.Decision, error)
	observe func(int)
	lanes   int
	turns   *bulkhead.Bulkhead[uuid.UUID]

	mu     sync.Mutex
	groups map[ownKey]*ownGroup
}

// ownKey names what shares transactions: orders of a tenant and a lane. Those for several lanes are of none: -1.
type ownKey struct {
	tenant uuid.UUID
	lane   int
}

type ownGroup struct {
	groupcommit.Group[Order, []booking.Decision]
	users int
}

// How many transactions of this kind run at a time, and how many of one tenant. While several tenants book, each counts
// for two: then Postgres' processors, and ours, are busy for one tenant with one at a time.
const (
	ownTurns       = 8
	OwnTenantTurns = 2
)

func newOwnBookings(s *Store) *ownBookings {
	return &ownBookings{
		observe: s.db.Observe("batch"), lanes: s.db.Cfg.Lanes, turns: bulkhead.New[uuid.UUID](ownTurns, OwnTenantTurns), groups: map[ownKey]*ownGroup{},
		run: func(ctx context.Context, orders []Order) ([][]booking.Decision, error) {
			ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
			defer cancel()
			turn, err := s.ownBookings.turns.Acquire(ctx, orders[0].Tenant(), s.db.Neighbours.Weight())
			if err != nil {
				return nil, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
			}
			defer s.db.Neighbours.Rest(turn, time.Now())
			return s.bookOwn(ctx, orders)
		},
	}
}

// lane is the number of the lane that all drafts are for; -1: they are for several.
func (o *ownBookings) lane(ord Order) int {
	lane := pg.LaneOf(ord.recipientKey(), o.lanes)
	if o.lanes > 1 && slices.ContainsFunc(ord.Drafts, func(d booking.Draft) bool { return pg.LaneOf(keyOf(d), o.lanes) != lane }) {
		return -1
	}
	return lane
}

// book books an order together with others of its tenant.
func (o *ownBookings) book(ord Order) ([]booking.Decision, error) {
	key := ownKey{ord.Tenant(), o.lane(ord)}
	o.mu.Lock()
	g := o.groups[key]
	if g == nil {
		g = &ownGroup{Group: groupcommit.Group[Order, []booking.Decision]{
			Run: o.run, Weight: Order.weight, MaxWeight: 1000, Parallel: OwnTenantTurns, Alone: pg.MaybeOne, Observe: o.observe,
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

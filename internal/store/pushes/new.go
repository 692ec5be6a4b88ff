package pushes

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, terms *terms.Store) *Store {
	lanes := db.Cfg.Lanes
	s := &Store{db: db, terms: terms, Crowds: crowds{known: map[quota.Recipient]*Crowd{}}}
	s.forecasts = bulkhead.New[uuid.UUID](forecasts, 1)
	s.bookGroups = pg.NewLaneGroups(lanes, recipientKey, func() *groupcommit.Group[booking.Order, []booking.Decision] {
		return &groupcommit.Group[booking.Order, []booking.Decision]{Run: s.bookShared, MaxWeight: 1000, Pause: bookPause, Alone: pg.MaybeOne, Observe: db.Observe("book")}
	})
	s.bookSlots = bulkhead.New[uuid.UUID](math.MaxInt64, singlesAlone)
	s.ownSlots = bulkhead.New[uuid.UUID](math.MaxInt64, singlesAlone)
	s.ownBookings = newOwnBookings(s)
	glanceLanes := 1 // glances take no locks, so one group serves all lanes unless each lane is a shard
	if db.ByShard() {
		glanceLanes = lanes
	}
	s.glanceGroups = pg.NewLaneGroups(glanceLanes, func(sp span) int64 { return sp.key }, func() *groupcommit.Group[span, glance] {
		return &groupcommit.Group[span, glance]{Run: s.glanceTogether, MaxWeight: 500, Pause: glancePause, PauseFrom: glanceCrowd, Alone: pg.MaybeOne, Observe: db.Observe("look")}
	})
	return s
}

// The pauses make groups larger. Measured with `make bench`: a quarter more submits per second, for this much latency
// under load. Batches are large enough by themselves.
const (
	bookPause   = 2 * time.Millisecond
	glancePause = 2 * time.Millisecond // only while at least glanceCrowd callers read: a single caller does not wait
	glanceCrowd = 4
)

func newOwnBookings(s *Store) *ownBookings {
	return &ownBookings{
		observe: s.db.Observe("batch"), lanes: s.db.Cfg.Lanes, turns: bulkhead.New[uuid.UUID](ownTransactions, TenantTransactions), groups: map[ownKey]*ownGroup{},
		run: func(ctx context.Context, orders []booking.Order) ([][]booking.Decision, error) {
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

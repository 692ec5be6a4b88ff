// Package pushes books, changes, cancels and reads pushes.
package pushes

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store books, changes and reads pushes.
type Store struct {
	db     *pg.DB
	terms  *terms.Store
	Crowds crowds // recipients with many bookings

	bookGroups   pg.LaneGroups[Order, []booking.Decision] // of single pushes
	bookPlaces   *bulkhead.Bulkhead[uuid.UUID]            // of single pushes in bookGroups
	ownPlaces    *bulkhead.Bulkhead[uuid.UUID]            // of single pushes in ownBookings
	ownBookings  *ownBookings
	forecasts    *bulkhead.Bulkhead[uuid.UUID]
	glanceGroups pg.LaneGroups[span, glance]
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, terms *terms.Store) *Store {
	lanes := db.Cfg.Lanes
	s := &Store{db: db, terms: terms, Crowds: crowds{known: map[quota.Recipient]*Crowd{}}}
	s.forecasts = bulkhead.New[uuid.UUID](forecasts, 1)
	s.bookGroups = pg.NewLaneGroups(lanes, Order.recipientKey, func() *groupcommit.Group[Order, []booking.Decision] {
		return &groupcommit.Group[Order, []booking.Decision]{Run: s.bookShared, MaxWeight: 1000, Pause: bookPause, Alone: pg.MaybeOne, Observe: db.Observe("book")}
	})
	s.bookPlaces = bulkhead.New[uuid.UUID](math.MaxInt64, singlesAlone)
	s.ownPlaces = bulkhead.New[uuid.UUID](math.MaxInt64, singlesAlone)
	s.ownBookings = newOwnBookings(s)
	looks := 1 // they lock nothing, and so are about all lanes together, unless each is a shard
	if db.ByShard() {
		looks = lanes
	}
	s.glanceGroups = pg.NewLaneGroups(looks, func(sp span) int64 { return sp.key }, func() *groupcommit.Group[span, glance] {
		return &groupcommit.Group[span, glance]{Run: s.glanceTogether, MaxWeight: 500, Pause: lookPause, PauseFrom: lookCrowd, Alone: pg.MaybeOne, Observe: db.Observe("look")}
	})
	return s
}

// The pauses make groups larger. Measured with `make bench`: a quarter more submits per second, for this much latency
// under load. Batches are large enough by themselves.
const (
	bookPause = 2 * time.Millisecond
	lookPause = 2 * time.Millisecond // after at least lookCrowd callers look: a single caller waits for none
	lookCrowd = 4
)

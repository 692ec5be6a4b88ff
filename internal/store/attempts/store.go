// Package attempts finds due pushes, claims them for sending and records the outcomes of attempts.
package attempts

import (
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store claims and finishes attempts to send.
type Store struct {
	db     *pg.DB
	terms  *terms.Store
	pushes *pushes.Store

	clockAhead   atomic.Int64 // last lead of Postgres' clock over the local clock, in nanoseconds
	claimGroups  pg.LaneGroups[booking.ClaimOrder, booking.Claim]
	finishGroups pg.LaneGroups[booking.Finish, bool]
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, terms *terms.Store, pushes *pushes.Store) *Store {
	lanes := db.Cfg.Lanes
	s := &Store{db: db, terms: terms, pushes: pushes}
	s.claimGroups = pg.NewLaneGroups(lanes, claimKey, func() *groupcommit.Group[booking.ClaimOrder, booking.Claim] {
		return &groupcommit.Group[booking.ClaimOrder, booking.Claim]{Run: s.claimTogether, MaxWeight: 500, Pause: claimPause, Observe: db.Observe("claim")}
	})
	s.finishGroups = pg.NewLaneGroups(lanes, func(f booking.Finish) int64 { return f.RecipientKey }, func() *groupcommit.Group[booking.Finish, bool] {
		return &groupcommit.Group[booking.Finish, bool]{Run: s.finishTogether, MaxWeight: 500, Pause: finishPause, Alone: pg.MaybeOne, Observe: db.Observe("finish")}
	})
	return s
}

// The pauses make groups larger. Measured with `make bench`: a quarter more deliveries per second, for this much latency
// under load. Only a recipient's next push waits for a finish.
const (
	claimPause  = 4 * time.Millisecond
	finishPause = 20 * time.Millisecond
)

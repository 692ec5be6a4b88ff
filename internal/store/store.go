package store

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/quota"
)

// The pauses make groups larger. Measured with `make bench`: a quarter more deliveries and submits per second, for this
// much latency under load. Batches are large enough by themselves. Nothing but a recipient's next push waits for a finish.
const (
	claimPause  = 4 * time.Millisecond
	finishPause = 20 * time.Millisecond
	bookPause   = 2 * time.Millisecond
	lookPause   = 2 * time.Millisecond // after looks for at least lookCrowd callers: one that looks again and again waits for none
	lookCrowd   = 4
)

// Store is the service's view of Postgres. It is safe for concurrent use.
type Store struct {
	route        route         // of both pools
	pool         *pgxpool.Pool // for what changes something
	readPool     *pgxpool.Pool
	reading      reach // of readPool
	reads        *part // of readPool
	changes      *part // of pool, for single changes
	installation installation
	cfg          Config
	bookGroups   laneGroups[order, []booking.Decision] // of single pushes
	bookPlaces   *bulkhead.Bulkhead[uuid.UUID]         // of single pushes in bookGroups
	ownPlaces    *bulkhead.Bulkhead[uuid.UUID]         // of single pushes in ownBookings
	neighbours   bulkhead.Neighbours[uuid.UUID]
	ownBookings  *ownBookings
	crowds       crowds
	layouts      layouts // of pushes and sends
	terms        knownTerms
	ahead        atomic.Int64        // by how many nanoseconds Postgres' clock was ahead of ours
	walks        *semaphore.Weighted // through all partitions
	forecasts    *bulkhead.Bulkhead[uuid.UUID]
	claimGroups  laneGroups[booking.ClaimOrder, booking.Claim]
	finishGroups laneGroups[booking.Finish, bool]
	glanceGroups laneGroups[span, glance]
}

// Open connects to Postgres. It succeeds while Postgres is down: connections are made as they are needed.
func Open(ctx context.Context, databaseURL string, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	s := &Store{cfg: cfg, crowds: crowds{known: map[quota.Recipient]*crowd{}}, reading: reach{pool: "reads", log: cfg.Log}}
	var err error
	if s.pool, err = openPool(ctx, databaseURL, cfg, &s.route, &reach{pool: "changes", log: cfg.Log}, cfg.MaxConns, 2, ""); err != nil {
		return nil, err
	}
	onlyReads := "SET default_transaction_read_only = on; SET statement_timeout = " + milliseconds(cfg.ReadTimeout)
	if s.readPool, err = openPool(ctx, databaseURL, cfg, &s.route, &s.reading, cfg.ReadConns, 0, onlyReads); err != nil {
		s.pool.Close()
		return nil, err
	}
	s.walks = semaphore.NewWeighted(mostWalks)
	s.forecasts = bulkhead.New[uuid.UUID](forecasts, 1)
	s.reads = newPart(cfg.ReadConns, cfg.ReadConns/4)
	s.changes = newPart(cfg.MaxConns/2, cfg.MaxConns/8)
	s.bookGroups = newLaneGroups(cfg.Lanes, order.recipientKey, func() *groupcommit.Group[order, []booking.Decision] {
		return &groupcommit.Group[order, []booking.Decision]{Run: s.bookShared, MaxWeight: 1000, Pause: bookPause, Alone: maybeOne, Observe: s.observe("book")}
	})
	s.bookPlaces = bulkhead.New[uuid.UUID](math.MaxInt64, singlesAlone)
	s.ownPlaces = bulkhead.New[uuid.UUID](math.MaxInt64, singlesAlone)
	s.ownBookings = newOwnBookings(s)
	s.terms.load = s.loadTerms
	s.claimGroups = newLaneGroups(cfg.Lanes, claimKey, func() *groupcommit.Group[booking.ClaimOrder, booking.Claim] {
		return &groupcommit.Group[booking.ClaimOrder, booking.Claim]{Run: s.claimTogether, MaxWeight: 500, Pause: claimPause, Observe: s.observe("claim")}
	})
	s.finishGroups = newLaneGroups(cfg.Lanes, func(f booking.Finish) int64 { return f.RecipientKey }, func() *groupcommit.Group[booking.Finish, bool] {
		return &groupcommit.Group[booking.Finish, bool]{Run: s.finishTogether, MaxWeight: 500, Pause: finishPause, Alone: maybeOne, Observe: s.observe("finish")}
	})
	looks := 1 // they lock nothing, and so are about all lanes together, unless each is a shard
	if s.byShard() {
		looks = cfg.Lanes
	}
	s.glanceGroups = newLaneGroups(looks, func(sp span) int64 { return sp.key }, func() *groupcommit.Group[span, glance] {
		return &groupcommit.Group[span, glance]{Run: s.glanceTogether, MaxWeight: 500, Pause: lookPause, PauseFrom: lookCrowd, Alone: maybeOne, Observe: s.observe("look")}
	})
	return s, nil
}

// Close waits for running statements and closes the connections.
func (s *Store) Close() {
	s.pool.Close()
	s.readPool.Close()
}

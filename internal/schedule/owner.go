package schedule

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// How long a worker owns a lane without renewing that, and how often it renews. When a worker was killed, its lanes have
// no owner for as long as the first. What is armed is not late for that; what waits for a paced channel, and what nobody
// armed, may be.
const (
	laneLease   = 3 * time.Second
	renewPeriod = time.Second
	renewRetry  = 250 * time.Millisecond // where that failed
)

// leavePatience is how long a worker that stops waits for Postgres.
const leavePatience = time.Second

// laneStore keeps who owns which lanes.
type laneStore interface {
	OwnLanes(ctx context.Context, worker uuid.UUID, lanes []push.Lane, lease time.Duration) ([]push.Lane, error)
	LeaveLanes(ctx context.Context, worker uuid.UUID) error
}

// Owner keeps this worker's part of the lanes: it looks after those alone, as far as it can know. Workers share all
// lanes in equal parts. That two of them own one for a moment does no harm.
type Owner struct {
	store  laneStore
	worker uuid.UUID
	lanes  []push.Lane
	log    *slog.Logger

	mu    sync.Mutex
	owned []push.Lane
	until time.Time // by this process' clock
}

// NewOwner returns the owner of a part of lanes. It owns none before Run.
func NewOwner(st laneStore, lanes []push.Lane, log *slog.Logger) *Owner {
	return &Owner{store: st, worker: uuid.New(), lanes: lanes, log: log}
}

// Lanes lists the lanes that this worker owns now.
func (o *Owner) Lanes() []push.Lane {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().After(o.until) {
		return nil
	}
	return o.owned
}

// Workers is how many workers there are, roughly: as many as there are parts like that of this worker. A worker that owns
// nothing is one of more workers than lanes.
func (o *Owner) Workers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.until.IsZero(): // it has not asked yet
		return 1
	case len(o.owned) == 0:
		return 2 * len(o.lanes)
	}
	return len(o.lanes) / len(o.owned)
}

// Run renews the ownership until ctx ends, and then leaves the lanes to other workers.
func (o *Owner) Run(ctx context.Context) error {
	_ = loop.Loop{Name: "own lanes", Interval: renewPeriod, Retry: renewRetry, Log: o.log, Pass: o.Pass}.Run(ctx) // it never fails
	o.set(nil, time.Time{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
	defer cancel()
	if err := o.store.LeaveLanes(ctx, o.worker); err != nil {
		o.log.WarnContext(ctx, "lanes have no owner until the lease ends", "lease", laneLease.String(), "error", err)
	}
	return nil
}

// Pass renews the ownership once.
func (o *Owner) Pass(ctx context.Context) (full bool, err error) {
	until := time.Now().Add(laneLease)
	owned, err := o.store.OwnLanes(ctx, o.worker, o.lanes, laneLease)
	if err == nil {
		o.set(owned, until)
	}
	return false, err
}

func (o *Owner) set(owned []push.Lane, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owned, o.until = owned, until
}

package upkeep

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// A worker owns a lane for laneLease, and renews that every renewPeriod. After a worker was killed, its lanes have no
// owner until the lease expires. Armed pushes are still on time. Pushes that wait for a paced channel, or that were not
// armed, may be late.
const (
	laneLease   = 3 * time.Second
	renewPeriod = time.Second
	renewRetry  = 250 * time.Millisecond // after a failed renewal
)

// leaveTimeout bounds how long a worker that stops waits for Postgres.
const leaveTimeout = time.Second

// laneStore records the owners of lanes.
type laneStore interface {
	OwnLanes(ctx context.Context, worker uuid.UUID, lanes []push.Lane, lease time.Duration) ([]push.Lane, error)
	LeaveLanes(ctx context.Context, worker uuid.UUID) error
}

// Owner holds this worker's share of the lanes. Workers share all lanes in equal parts. Two workers may own the same
// lane for a moment, which does no harm.
type Owner struct {
	store  laneStore
	worker uuid.UUID
	lanes  []push.Lane
	log    *slog.Logger

	mu    sync.Mutex
	owned []push.Lane
	until time.Time // by this process' clock
}

// NewOwner returns the owner of a share of lanes. It owns none before Run.
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

// Workers estimates the number of workers from this worker's share of the lanes. If the worker owns none, there are
// more workers than lanes.
func (o *Owner) Workers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.until.IsZero(): // before the first renewal
		return 1
	case len(o.owned) == 0:
		return 2 * len(o.lanes)
	}
	return len(o.lanes) / len(o.owned)
}

// Run renews the ownership until ctx ends, and then releases the lanes.
func (o *Owner) Run(ctx context.Context) error {
	_ = loop.Loop{Name: "own lanes", Interval: renewPeriod, Retry: renewRetry, Log: o.log, Pass: o.Pass}.Run(ctx) // Run never fails
	o.set(nil, time.Time{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := o.store.LeaveLanes(ctx, o.worker); err != nil {
		o.log.WarnContext(ctx, "could not release lanes; they have no owner until the lease expires", "lease", laneLease.String(), "error", err)
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

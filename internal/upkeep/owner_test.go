package upkeep_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// register is a store of lane owners that may fail.
type register struct {
	lanes []push.Lane
	fails atomic.Bool
	left  atomic.Bool
}

func (r *register) OwnLanes(context.Context, uuid.UUID, []push.Lane, time.Duration) ([]push.Lane, error) {
	if r.fails.Load() {
		return nil, errors.New("away")
	}
	return r.lanes, nil
}

func (r *register) LeaveLanes(context.Context, uuid.UUID) error {
	r.left.Store(true)
	return nil
}

// TestOwner_LosesLanes: a worker that cannot renew its lanes gives them up before another one takes them, and a worker
// that stops releases them at once.
func TestOwner_LosesLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &register{lanes: push.Lanes(2)}
		o := upkeep.NewOwner(r, push.Lanes(4), quiet)
		if got := o.Lanes(); len(got) > 0 {
			t.Errorf("owned before it asked: %v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- o.Run(ctx) }()
		synctest.Wait()
		if got := o.Lanes(); !slices.Equal(got, r.lanes) {
			t.Errorf("owned %v", got)
		}
		r.fails.Store(true)
		time.Sleep(2250 * time.Millisecond)
		if got := o.Lanes(); len(got) != 2 {
			t.Errorf("owned %v while the lease runs", got)
		}
		time.Sleep(time.Second)
		if got := o.Lanes(); len(got) > 0 {
			t.Errorf("owned %v after the lease", got)
		}
		r.fails.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := o.Lanes(); len(got) != 2 {
			t.Errorf("owned %v when Postgres is back", got)
		}
		stop()
		if err := <-done; err != nil || !r.left.Load() || len(o.Lanes()) > 0 {
			t.Errorf("%v; left %v, owned %v", err, r.left.Load(), o.Lanes())
		}
	})
}

// TestOwner_Shares: three workers share the lanes in equal parts, no lane is owned twice, and the lanes of a worker
// that stops soon have an owner again.
func TestOwner_Shares(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	const laneCount = 16
	var (
		owners []*upkeep.Owner
		stops  []func()
	)
	for range 3 {
		o := upkeep.NewOwner(b.store, push.Lanes(laneCount), quiet)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- o.Run(ctx) }()
		stop := sync.OnceFunc(func() { cancel(); <-done })
		defer stop()
		owners, stops = append(owners, o), append(stops, stop)
	}
	shared := func(workers ...*upkeep.Owner) bool {
		seen := map[push.Lane]bool{}
		for _, o := range workers {
			got := o.Lanes()
			if len(got) < laneCount/len(workers) {
				return false
			}
			for _, l := range got {
				seen[l] = true
			}
		}
		return len(seen) == laneCount
	}
	counted := func(o *upkeep.Owner) bool { n := o.Workers(); return n == 2 || n == 3 }
	testenv.Until(t, 50*time.Millisecond, "three workers share the lanes, and count each other", func() bool {
		return shared(owners...) && counted(owners[0]) && counted(owners[1]) && counted(owners[2])
	})
	stops[1]()
	testenv.Until(t, 50*time.Millisecond, "two workers share the lanes", func() bool { return shared(owners[0], owners[2]) })
}

// TestOwner_Workers: a worker estimates the number of workers by its share of the lanes.
func TestOwner_Workers(t *testing.T) {
	t.Parallel()
	r := &register{}
	o := upkeep.NewOwner(r, push.Lanes(64), quiet)
	if n := o.Workers(); n != 1 {
		t.Errorf("before it asked: %d", n)
	}
	for owned, want := range map[int]int{64: 1, 32: 2, 22: 2, 16: 4, 7: 9, 6: 10, 1: 64, 0: 128} {
		r.lanes = push.Lanes(64)[:owned]
		if _, err := o.Pass(t.Context()); err != nil || o.Workers() != want {
			t.Errorf("a worker with %d of 64 lanes: one of %d, want %d; %v", owned, o.Workers(), want, err)
		}
	}
}

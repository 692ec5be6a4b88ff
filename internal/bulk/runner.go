package bulk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

const (
	interval = 250 * time.Millisecond
	// stepped is how many pushes are changed in a step, and atOnce how many of these at the same time: callers, and the other tenants'
	// bulk changes, have the rest of the connections, and their turn soon.
	stepped = 64
	atOnce  = 4
	// mostTries is how often a push is tried that fails for no reason that is known.
	mostTries = 5
)

// runnerStore has the bulk changes, and does their steps.
type runnerStore interface {
	TakeBulkChange(ctx context.Context, worker uuid.UUID, except []uuid.UUID) (*store.RunningBulkChange, error)
	ListBulk(ctx context.Context, id uuid.UUID) error
	UndecidedBulk(ctx context.Context, p *push.BulkChange, limit int) ([]push.BulkPush, error)
	NoteBulk(ctx context.Context, id uuid.UUID, decided []push.BulkPush) error
	EndBulk(ctx context.Context, id uuid.UUID) (ended bool, err error)
}

// runner carries bulk changes out: step by step, each of which can be repeated. Tenants take turns.
type runner struct {
	store  runnerStore
	pushes pushes
	log    *slog.Logger
	worker uuid.UUID
	turns  loop.Turns[uuid.UUID, store.RunningBulkChange]

	mu    sync.Mutex
	tries map[uuid.UUID]int // of pushes that failed
}

// NewRunner returns a loop that carries out bulk changes. Every worker runs one. A bulk change is in the hands of one of them at a time,
// and goes on with another one after a crash: what was done is found done.
func NewRunner(st runnerStore, p pushes, log *slog.Logger) loop.Loop {
	r := &runner{store: st, pushes: p, log: log, worker: uuid.New(), tries: map[uuid.UUID]int{}}
	r.turns.Owner = func(p *store.RunningBulkChange) uuid.UUID { return p.Tenant }
	r.turns.Take = func(ctx context.Context, except []uuid.UUID) (*store.RunningBulkChange, error) {
		return st.TakeBulkChange(ctx, r.worker, except)
	}
	return loop.Loop{Name: "run bulk changes", Interval: interval, Log: log, Pass: r.pass}
}

// pass is a step of the bulk change whose turn it is.
func (r *runner) pass(ctx context.Context) (full bool, err error) {
	p, err := r.turns.Next(ctx)
	if err != nil || p == nil {
		return false, err
	}
	if err := r.step(push.WithActor(ctx, p.By), p); err != nil {
		return false, fmt.Errorf("bulk change %s: %w", p.ID, err)
	}
	return true, nil
}

func (r *runner) step(ctx context.Context, p *store.RunningBulkChange) error {
	if p.Status == push.BulkRunning {
		if !p.Listed {
			return r.store.ListBulk(ctx, p.ID)
		}
		todo, err := r.store.UndecidedBulk(ctx, &p.BulkChange, stepped)
		if err != nil {
			return err
		}
		if len(todo) > 0 {
			return r.change(ctx, p, todo)
		}
	}
	ended, err := r.store.EndBulk(ctx, p.ID)
	if ended && err == nil {
		r.log.InfoContext(ctx, "bulk change ended", "tenant", p.Tenant, "bulk_change", p.ID, "action", p.Action, "found", p.Found, "changed", p.Changed)
	}
	return err
}

// change changes pushes, those of a recipient in their order, and notes what has become of them, also if some failed.
func (r *runner) change(ctx context.Context, p *store.RunningBulkChange, todo []push.BulkPush) error {
	of := map[int64][]int{}
	var order []int64
	for i, one := range todo {
		if of[one.RecipientKey] == nil {
			order = append(order, one.RecipientKey)
		}
		of[one.RecipientKey] = append(of[one.RecipientKey], i)
	}
	var (
		g    errgroup.Group
		errs = make([]error, len(todo))
	)
	g.SetLimit(atOnce)
	for _, key := range order {
		g.Go(func() error {
			for _, i := range of[key] {
				if todo[i], errs[i] = r.one(ctx, p, todo[i]); errs[i] != nil { // what comes after it may need its place
					return nil
				}
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	failpoint.Hit(failpoint.BulkChanged)
	var decided []push.BulkPush
	for _, one := range todo {
		if one.Outcome != "" {
			decided = append(decided, one)
		}
	}
	return errors.Join(errors.Join(errs...), r.store.NoteBulk(ctx, p.ID, decided))
}

// one changes a push.
func (r *runner) one(ctx context.Context, p *store.RunningBulkChange, one push.BulkPush) (decided push.BulkPush, err error) {
	if p.Action == push.BulkCancel {
		decided, err = cancel(ctx, r.pushes, &p.BulkChange, one)
	} else {
		decided, err = move(ctx, r.pushes, &p.BulkChange, one, schedule.Options{Caps: p.Caps, Was: one.SendAt})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.tries, one.ID)
		return decided, nil
	}
	if errors.Is(err, push.ErrUnavailable) || ctx.Err() != nil {
		return one, err
	}
	if r.tries[one.ID]++; r.tries[one.ID] >= mostTries {
		delete(r.tries, one.ID)
		r.log.ErrorContext(ctx, "a push of a bulk change failed again and again; it is left as it is", "push", one.ID, "error", err)
		one.Outcome = push.BulkFailed
		return one, nil
	}
	return one, err
}

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

	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store/bulk"
)

const (
	interval = 250 * time.Millisecond
	// A step changes up to stepSize pushes, concurrency of them at the same time. This leaves connections for callers,
	// and gives other tenants' bulk changes a turn soon.
	stepSize    = 64
	concurrency = 4
	// maxTries bounds the tries of a push that fails for an unknown reason.
	maxTries = 5
)

// runnerStore takes bulk changes, and records their steps.
type runnerStore interface {
	TakeBulkChange(ctx context.Context, worker uuid.UUID, except []uuid.UUID) (*bulk.Running, error)
	ListBulk(ctx context.Context, id uuid.UUID) error
	UndecidedBulk(ctx context.Context, p *bulkchange.Change, limit int) ([]bulkchange.Push, error)
	RecordBulk(ctx context.Context, id uuid.UUID, decided []bulkchange.Push) error
	EndBulk(ctx context.Context, id uuid.UUID) (ended bool, err error)
}

// runner runs bulk changes in steps that can be repeated. Tenants take turns.
type runner struct {
	store  runnerStore
	pushes pushes
	log    *slog.Logger
	worker uuid.UUID
	turns  loop.RoundRobin[uuid.UUID, bulk.Running]

	mu    sync.Mutex
	tries map[uuid.UUID]int // failed tries, by push
}

// NewRunner returns a loop that runs bulk changes. Every worker runs one. One worker at a time runs a bulk change;
// after a crash another worker continues it, and repeating a step changes nothing.
func NewRunner(st runnerStore, p pushes, log *slog.Logger) loop.Loop {
	r := &runner{store: st, pushes: p, log: log, worker: uuid.New(), tries: map[uuid.UUID]int{}}
	r.turns.Owner = func(p *bulk.Running) uuid.UUID { return p.Tenant }
	r.turns.Take = func(ctx context.Context, except []uuid.UUID) (*bulk.Running, error) {
		return st.TakeBulkChange(ctx, r.worker, except)
	}
	return loop.Loop{Name: "run bulk changes", Interval: interval, Log: log, Pass: r.pass}
}

// pass runs a step of the next bulk change.
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

func (r *runner) step(ctx context.Context, p *bulk.Running) error {
	if p.Status == bulkchange.Running {
		if !p.Listed {
			return r.store.ListBulk(ctx, p.ID)
		}
		todo, err := r.store.UndecidedBulk(ctx, &p.Change, stepSize)
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

// change changes pushes, each recipient's in order, and records the outcomes, also if some failed.
func (r *runner) change(ctx context.Context, p *bulk.Running, todo []bulkchange.Push) error {
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
	g.SetLimit(concurrency)
	for _, key := range order {
		g.Go(func() error {
			for _, i := range of[key] {
				if todo[i], errs[i] = r.one(ctx, p, todo[i]); errs[i] != nil { // a later push may need its place
					return nil
				}
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	failpoint.Hit(failpoint.BulkChanged)
	var decided []bulkchange.Push
	for _, one := range todo {
		if one.Outcome != "" || one.Sending {
			decided = append(decided, one)
		}
	}
	return errors.Join(errors.Join(errs...), r.store.RecordBulk(ctx, p.ID, decided))
}

// one changes a push.
func (r *runner) one(ctx context.Context, p *bulk.Running, one bulkchange.Push) (decided bulkchange.Push, err error) {
	if p.Action == bulkchange.Cancel {
		decided, err = cancel(ctx, r.pushes, &p.Change, one)
	} else {
		decided, err = move(ctx, r.pushes, &p.Change, one, schedule.Options{Caps: p.Caps, Was: one.SendAt})
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
	if r.tries[one.ID]++; r.tries[one.ID] >= maxTries {
		delete(r.tries, one.ID)
		r.log.ErrorContext(ctx, "bulk change gave up on a push; it stays unchanged", "push", one.ID, "error", err)
		one.Outcome = bulkchange.Failed
		return one, nil
	}
	return one, err
}

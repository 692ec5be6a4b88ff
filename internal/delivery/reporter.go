package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/loop"
)

// viewStore stores workers' views of their channels.
type viewStore interface {
	ReplaceChannelViews(ctx context.Context, worker uuid.UUID, views []channelhealth.View) error
	DeleteChannelViews(ctx context.Context, worker uuid.UUID) error
	CountOutcomes(ctx context.Context, worker uuid.UUID, counts []channelhealth.Outcomes) error
	NotifyUnhealthy(ctx context.Context) ([]channelhealth.Unhealthy, error)
}

// Reporter stores a worker's view of its channels: when one changes, and every ten seconds. Every five seconds it
// stores the outcomes of attempts. It reads the worker's memory once a second, so that no push waits for it, however
// often a channel changes.
type Reporter struct {
	worker *Worker
	store  viewStore
	id     uuid.UUID // of the worker
	log    *slog.Logger

	seen      []channelhealth.View // without the pauses
	seenAt    time.Time
	countedAt time.Time
}

const (
	reportEvery = time.Second
	reportAgain = 10 * time.Second
	countAgain  = 5 * time.Second
)

// NewReporter returns a reporter of a worker. The id must be unique among workers.
func NewReporter(w *Worker, st viewStore, id uuid.UUID, log *slog.Logger) *Reporter {
	return &Reporter{worker: w, store: st, id: id, log: log}
}

// Run reports until ctx ends, and then removes the worker's views. It always returns nil.
func (r *Reporter) Run(ctx context.Context) error {
	defer func() { _ = r.store.DeleteChannelViews(context.WithoutCancel(ctx), r.id) }() // else they are forgotten after a while
	return loop.Loop{Name: "report channel states", Interval: reportEvery, Retry: reportAgain, Log: r.log, Pass: r.pass}.Run(ctx)
}

func (r *Reporter) pass(ctx context.Context) (full bool, err error) {
	return false, errors.Join(r.see(ctx), r.count(ctx))
}

// see stores the views, if they have changed.
func (r *Reporter) see(ctx context.Context) error {
	var views []channelhealth.View
	for _, q := range r.worker.queues.all {
		views = append(views, q.views()...)
	}
	if r.worker.queues.own != nil {
		views = append(views, r.worker.queues.own.views()...)
	}
	states := slices.Clone(views)
	for i := range states {
		states[i].Held = 0
	}
	if slices.Equal(states, r.seen) && time.Since(r.seenAt) < reportAgain {
		return nil
	}
	if err := r.store.ReplaceChannelViews(ctx, r.id, views); err != nil {
		return err
	}
	r.seen, r.seenAt = states, time.Now()
	return nil
}

// count stores the counted outcomes, and notifies tenants of channels that have become unhealthy.
func (r *Reporter) count(ctx context.Context) error {
	if time.Since(r.countedAt) < countAgain {
		return nil
	}
	if counts := r.worker.outcomes.take(); len(counts) > 0 {
		if err := r.store.CountOutcomes(ctx, r.id, counts); err != nil {
			r.worker.outcomes.add(counts...)
			return err
		}
	}
	unhealthy, err := r.store.NotifyUnhealthy(ctx)
	if err != nil {
		return err
	}
	for _, u := range unhealthy {
		r.log.WarnContext(ctx, "channel is unhealthy for a tenant", "channel", u.Channel, "tenant", u.Tenant, "state", u.State, "attempts", u.Attempts, "rejected", u.Rejected)
	}
	r.countedAt = time.Now()
	return nil
}

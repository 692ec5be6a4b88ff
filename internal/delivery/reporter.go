package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
)

// viewed keeps what workers see of their channels.
type viewed interface {
	SeeChannels(ctx context.Context, worker uuid.UUID, views []push.ChannelView) error
	LeaveChannels(ctx context.Context, worker uuid.UUID) error
	CountOutcomes(ctx context.Context, worker uuid.UUID, counts []push.ChannelOutcomes) error
	TellUnhealthy(ctx context.Context) ([]push.UnhealthyChannel, error)
}

// Reporter tells how a worker's channels are: when one changes, and every ten seconds; and every five seconds how attempts
// ended. It looks at the worker's memory once a second, so that no push waits for it, however often a channel changes.
type Reporter struct {
	worker *Worker
	store  viewed
	id     uuid.UUID // of the worker
	log    *slog.Logger

	told      []push.ChannelView // without the pauses
	toldAt    time.Time
	countedAt time.Time
}

const (
	reportLook  = time.Second
	reportAgain = 10 * time.Second
	countAgain  = 5 * time.Second
)

// NewReporter returns what tells of a worker, which no other one has the id of.
func NewReporter(w *Worker, st viewed, id uuid.UUID, log *slog.Logger) *Reporter {
	return &Reporter{worker: w, store: st, id: id, log: log}
}

// Run tells until ctx ends, and then that the worker is gone. It always returns nil.
func (r *Reporter) Run(ctx context.Context) error {
	defer func() { _ = r.store.LeaveChannels(context.WithoutCancel(ctx), r.id) }() // else it is forgotten after a while
	return loop.Loop{Name: "telling how the channels are", Interval: reportLook, Retry: reportAgain, Log: r.log, Pass: r.pass}.Run(ctx)
}

func (r *Reporter) pass(ctx context.Context) (full bool, err error) {
	return false, errors.Join(r.see(ctx), r.count(ctx))
}

// see tells how the channels are.
func (r *Reporter) see(ctx context.Context) error {
	var views []push.ChannelView
	for _, q := range r.worker.queues.all {
		views = append(views, q.views()...)
	}
	states := slices.Clone(views)
	for i := range states {
		states[i].Held = 0
	}
	if slices.Equal(states, r.told) && time.Since(r.toldAt) < reportAgain {
		return nil
	}
	if err := r.store.SeeChannels(ctx, r.id, views); err != nil {
		return err
	}
	r.told, r.toldAt = states, time.Now()
	return nil
}

// count tells how attempts ended, and has tenants told of channels that have become unhealthy.
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
	unhealthy, err := r.store.TellUnhealthy(ctx)
	if err != nil {
		return err
	}
	for _, u := range unhealthy {
		r.log.WarnContext(ctx, "a channel is unhealthy for a tenant", "channel", u.Channel, "tenant", u.Tenant, "state", u.State, "attempts", u.Attempts, "rejected", u.Rejected)
	}
	r.countedAt = time.Now()
	return nil
}

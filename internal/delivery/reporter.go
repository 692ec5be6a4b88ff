package delivery

import (
	"context"
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
}

// Reporter tells how a worker's channels are: when one changes, and every ten seconds. It looks at the worker's memory
// once a second, so that no push waits for it, however often a channel changes.
type Reporter struct {
	worker *Worker
	store  viewed
	id     uuid.UUID // of the worker
	log    *slog.Logger

	told   []push.ChannelView // without the pauses
	toldAt time.Time
}

const (
	reportLook  = time.Second
	reportAgain = 10 * time.Second
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
	var views []push.ChannelView
	for _, q := range r.worker.queues.all {
		views = append(views, q.views()...)
	}
	states := slices.Clone(views)
	for i := range states {
		states[i].Held = 0
	}
	if slices.Equal(states, r.told) && time.Since(r.toldAt) < reportAgain {
		return false, nil
	}
	if err := r.store.SeeChannels(ctx, r.id, views); err != nil {
		return false, err
	}
	r.told, r.toldAt = states, time.Now()
	return false, nil
}

package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sendquota/sendquota/internal/push"
)

// ServerConfig sets up the handling of wake-ups.
type ServerConfig struct {
	Concurrency int           // wake-ups handled at the same time
	Drain       time.Duration // how long running handlers may take when the server stops
	Log         *slog.Logger
}

// How often every worker looks for wake-ups, with one script for each queue and look, and two for scheduled ones. A push is
// to leave within 300 ms of its second; asynq's defaults are 1 s and 5 s. Wake-ups are scheduled for a second before their
// time, so that they are pending in time although they are looked for less often.
const (
	lookPending   = 50 * time.Millisecond
	lookScheduled = ahead / 5
)

// Serve calls handle for the wake-ups whose time has come, until ctx ends; it then waits for running handlers. A
// handler that fails is called again a little later, as often as it takes. It is told to stop after ten minutes, and
// called again then.
func (q *Queue) Serve(ctx context.Context, cfg ServerConfig, handle func(context.Context, push.WakeUp) error) error {
	for q.names() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	server := q.newServer(cfg)
	if err := server.Start(handler(handle)); err != nil {
		return fmt.Errorf("serve queue: %w", err)
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}

func (q *Queue) newServer(cfg ServerConfig) *asynq.Server {
	weights := map[string]int{}
	for _, name := range q.names() {
		weights[name] = 1
	}
	return asynq.NewServerFromRedisClient(q.rdb, asynq.Config{
		Concurrency:              cfg.Concurrency,
		Queues:                   weights,
		TaskCheckInterval:        lookPending,
		DelayedTaskCheckInterval: lookScheduled,
		RetryDelayFunc:           again,
		IsFailure:                func(err error) bool { return !errors.As(err, new(push.ComeAgain)) },
		ShutdownTimeout:          cfg.Drain,
		Logger:                   &logger{log: cfg.Log},
		LogLevel:                 asynq.WarnLevel,
	})
}

func handler(handle func(context.Context, push.WakeUp) error) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		w, err := readWakeUp(t.Payload())
		if err != nil {
			return fmt.Errorf("read wake-up: %w: %w", err, asynq.SkipRetry)
		}
		return handle(ctx, w)
	})
}

// again says when a handler that failed is called again.
func again(failures int, err error, _ *asynq.Task) time.Duration {
	if early, ok := errors.AsType[push.ComeAgain](err); ok {
		return early.In
	}
	return min(time.Duration(failures+1)*time.Second, 5*time.Second)
}

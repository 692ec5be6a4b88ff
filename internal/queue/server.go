package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/push"
)

// ServerConfig configures the handling of wake-ups.
type ServerConfig struct {
	Concurrency int           // concurrent wake-ups
	Drain       time.Duration // how long running handlers may take when the server stops
	Workers     func() int    // estimated number of workers; nil: one
	Log         *slog.Logger
}

// A single worker polls for pending wake-ups every pollPending, with one script for each queue, and for scheduled ones
// every pollScheduled, with two. A push is to leave within 300 ms of its second; asynq's defaults are 1 s and 5 s.
// Wake-ups are scheduled for a second before their time, so that they are pending in time although they are polled for
// less often.
const (
	pollPending   = 50 * time.Millisecond
	pollScheduled = ahead / 5
)

// Workers poll at different moments, so several workers find a wake-up sooner than one. Each of them polls less often,
// by the root of their number: all together poll more as the fleet grows, but less than in proportion, and still find
// it sooner. At the maximum, a wake-up is forwarded, and then found by the last of them, within the second that it is
// ahead.
const (
	maxSlowdownPending   = 8
	maxSlowdownScheduled = 3
	workersPeriod        = 2 * time.Second // how often a worker reads the number of workers
)

// slowdown returns how many times less often each of several workers polls than a single one.
func slowdown(workers int) int { return max(1, int(math.Sqrt(float64(workers)))) }

// stopTimeout is the time that a server may take to stop while none of its handlers runs.
const stopTimeout = 5 * time.Second

// Serve calls handle for due wake-ups, until ctx ends; it then waits for running handlers. A failed handler is called
// again a little later, as often as needed. Its context ends after ten minutes, and it is called again then.
func (q *Queue) Serve(ctx context.Context, cfg ServerConfig, handle func(context.Context, push.WakeUp) error) error {
	for q.names() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	current := func() int {
		if cfg.Workers == nil {
			return 1
		}
		return slowdown(cfg.Workers())
	}
	var running atomic.Int64
	var stopping sync.WaitGroup
	stop := func(s *asynq.Server) { stopping.Go(func() { shutDown(s, &running, cfg) }) }
	now := current()
	server := newServer(q, cfg, now)
	if err := server.Start(handler(handle, &running)); err != nil {
		return fmt.Errorf("serve queue: %w", err)
	}
	defer stopping.Wait()
	defer func() { stop(server) }()
	tick := time.NewTicker(workersPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		then := current()
		if then == now {
			continue
		}
		next := newServer(q, cfg, then) // asynq fixes the intervals of a server
		if err := next.Start(handler(handle, &running)); err != nil {
			return fmt.Errorf("serve queue: %w", err)
		}
		stop(server)
		server, now = next, then
	}
}

// newServer returns the server of one of several workers, which polls slowdown times less often.
func newServer(q *Queue, cfg ServerConfig, factor int) *asynq.Server {
	weights := map[string]int{}
	for _, name := range q.names() {
		weights[name] = 1
	}
	return asynq.NewServerFromRedisClient(q.rdb.(redis.UniversalClient), asynq.Config{
		Concurrency:              cfg.Concurrency,
		Queues:                   weights,
		TaskCheckInterval:        pollPending * time.Duration(min(factor, maxSlowdownPending)),
		DelayedTaskCheckInterval: pollScheduled * time.Duration(min(factor, maxSlowdownScheduled)),
		JanitorInterval:          time.Hour, // the janitor removes completed tasks, and none are kept
		RetryDelayFunc:           retryDelay,
		IsFailure:                func(err error) bool { return !errors.As(err, new(push.ComeAgain)) },
		ShutdownTimeout:          cfg.Drain,
		Logger:                   &logger{log: cfg.Log},
		LogLevel:                 asynq.WarnLevel,
	})
}

// shutDown stops a server: it waits for running handlers, as long as they may take, and for asynq to leave Redis. asynq
// waits for the answer to its SUBSCRIBE without a limit. A server that waits on a silent connection is left behind.
func shutDown(s *asynq.Server, running *atomic.Int64, cfg ServerConfig) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Shutdown()
	}()
	late := time.After(cfg.Drain + stopTimeout)
	const step = 50 * time.Millisecond
	for idle := time.Duration(0); idle < stopTimeout; {
		select {
		case <-ended:
			return
		case <-late:
			idle = stopTimeout
		case <-time.After(step):
			if running.Load() == 0 {
				idle += step
			}
		}
	}
	cfg.Log.Warn("asynq did not stop in time, because Redis does not answer; leaving it behind")
}

func handler(handle func(context.Context, push.WakeUp) error, running *atomic.Int64) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		running.Add(1)
		defer running.Add(-1)
		w, err := readWakeUp(t.Payload())
		if err != nil {
			return fmt.Errorf("read wake-up: %w: %w", err, asynq.SkipRetry)
		}
		return handle(ctx, w)
	})
}

// retryDelay returns the delay before a failed handler is called again.
func retryDelay(failures int, err error, _ *asynq.Task) time.Duration {
	if early, ok := errors.AsType[push.ComeAgain](err); ok {
		return early.In
	}
	return min(time.Duration(failures+1)*time.Second, 5*time.Second)
}

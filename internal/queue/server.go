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

	"github.com/sendquota/sendquota/internal/push"
)

// ServerConfig sets up the handling of wake-ups.
type ServerConfig struct {
	Concurrency int           // wake-ups handled at the same time
	Drain       time.Duration // how long running handlers may take when the server stops
	Workers     func() int    // how many workers there are, roughly; nil: one
	Log         *slog.Logger
}

// How often a worker looks for wake-ups while it is the only one, with one script for each queue and look, and two for
// scheduled ones. A push is to leave within 300 ms of its second; asynq's defaults are 1 s and 5 s. Wake-ups are scheduled
// for a second before their time, so that they are pending in time although they are looked for less often.
const (
	lookPending   = 50 * time.Millisecond
	lookScheduled = ahead / 5
)

// Workers look at different moments, so that several find a wake-up sooner than one. So each of them looks less often,
// by the root of their number: all together ask more as the fleet grows, but less than in proportion, and still find it
// sooner. At the most a wake-up is forwarded, and then found by the last of them, within the second that it is ahead.
const (
	sparsestPending   = 8
	sparsestScheduled = 3
	workersPeriod     = 2 * time.Second // how often a worker asks how many there are
)

// sparseness is by how much less often each of so many workers looks than one.
func sparseness(workers int) int { return max(1, int(math.Sqrt(float64(workers)))) }

// farewell is how long a server may take to end while none of its handlers runs.
const farewell = 5 * time.Second

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
	sparse := func() int {
		if cfg.Workers == nil {
			return 1
		}
		return sparseness(cfg.Workers())
	}
	var running atomic.Int64
	var stopping sync.WaitGroup
	stop := func(s *asynq.Server) { stopping.Go(func() { shutDown(s, &running, cfg) }) }
	now := sparse()
	server := q.newServer(cfg, now)
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
		then := sparse()
		if then == now {
			continue
		}
		next := q.newServer(cfg, then) // asynq fixes the intervals of a server
		if err := next.Start(handler(handle, &running)); err != nil {
			return fmt.Errorf("serve queue: %w", err)
		}
		stop(server)
		server, now = next, then
	}
}

// newServer returns a server of one of several workers, each of which looks so many times less often.
func (q *Queue) newServer(cfg ServerConfig, sparse int) *asynq.Server {
	weights := map[string]int{}
	for _, name := range q.names() {
		weights[name] = 1
	}
	return asynq.NewServerFromRedisClient(q.rdb, asynq.Config{
		Concurrency:              cfg.Concurrency,
		Queues:                   weights,
		TaskCheckInterval:        lookPending * time.Duration(min(sparse, sparsestPending)),
		DelayedTaskCheckInterval: lookScheduled * time.Duration(min(sparse, sparsestScheduled)),
		JanitorInterval:          time.Hour, // it removes completed tasks, of which none are kept
		RetryDelayFunc:           again,
		IsFailure:                func(err error) bool { return !errors.As(err, new(push.ComeAgain)) },
		ShutdownTimeout:          cfg.Drain,
		Logger:                   &logger{log: cfg.Log},
		LogLevel:                 asynq.WarnLevel,
	})
}

// shutDown ends a server: it waits for running handlers, as long as they may take, and for asynq to say good-bye to Redis. asynq
// waits for the answer to its SUBSCRIBE without a limit; a server that does so on a connection that is silent is left behind.
func shutDown(s *asynq.Server, running *atomic.Int64, cfg ServerConfig) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Shutdown()
	}()
	late := time.After(cfg.Drain + farewell)
	const look = 50 * time.Millisecond
	for idle := time.Duration(0); idle < farewell; {
		select {
		case <-ended:
			return
		case <-late:
			idle = farewell
		case <-time.After(look):
			if running.Load() == 0 {
				idle += look
			}
		}
	}
	cfg.Log.Warn("asynq did not end in time, for want of Redis; it is left behind")
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

// again says when a handler that failed is called again.
func again(failures int, err error, _ *asynq.Task) time.Duration {
	if early, ok := errors.AsType[push.ComeAgain](err); ok {
		return early.In
	}
	return min(time.Duration(failures+1)*time.Second, 5*time.Second)
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/testenv"
)

// runNoopWorker is the process of a worker that only records when it was called. It lists its calls as a provider lists
// its pushes.
func runNoopWorker(t testenv.T) {
	var calls provider
	runAsynq(t, func(context.Context, *asynq.Task) error {
		calls.note("", time.Now())
		return nil
	})
	calls.listen(t)
}

// noop is the system of asynq alone: its worker does nothing.
type noop struct{ *lab }

// drain puts n tasks into an empty queue and returns when the worker was called for each. The worker starts when all
// are queued.
func (l noop) drain(n int, at time.Time) (calls []arrival, cpu usage) {
	redisURL := l.servers.Redis(l)
	l.enqueue(redisURL, n, at)
	before := l.cpu()
	worker := providerClient{l.T, testenv.FreeAddr(l)}
	process := l.startRole("no-op worker", "role-noop-worker", "REDIS_URL="+redisURL, "ADDR="+worker.addr)
	l.check(process.AwaitListen(l.Context(), worker.addr))
	l.eventually("the no-op worker is called for every task", func() bool { return worker.count() >= n })
	cpu = l.cpu().since(before)
	calls = worker.take()
	l.stop(process)
	return calls, cpu
}

// enqueue adds tasks with the size of our wake-ups.
func (l noop) enqueue(redisURL string, n int, at time.Time) {
	client := asynq.NewClientFromRedisClient(testenv.RedisClient(l, redisURL).(redis.UniversalClient))
	g, ctx := errgroup.WithContext(l.Context())
	g.SetLimit(16)
	for range n {
		g.Go(func() error {
			id := uuid.New()
			payload := fmt.Appendf(nil, `{"Push":"%s","Gen":1,"RecipientKey":-1234567890123456789,"At":"2026-12-01T09:00:00Z"}`, id)
			_, err := client.EnqueueContext(ctx, asynq.NewTask("noop", payload), asynq.TaskID(id.String()+":1"), asynq.ProcessAt(at))
			return err
		})
	}
	l.check(g.Wait())
}

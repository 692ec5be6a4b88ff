// Package queue wakes the workers: it puts wake-ups into asynq and calls a handler when their time has come. It is
// the only package that imports asynq.
//
// A wake-up decides nothing. asynq delivers it at least once, sometimes twice at the same time, up to a second early,
// and not at all if Redis loses it. All of that is harmless here, because a worker that is woken asks Postgres.
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/redisscript"
)

const (
	taskType   = "push:wake"
	allQueues  = "asynq:queues" // where asynq's Inspector finds the names of queues
	goroutines = 16             // asynq enqueues one task per round trip
)

// Queue puts wake-ups into asynq. It is safe for concurrent use.
type Queue struct {
	rdb       redis.UniversalClient
	client    *asynq.Client
	inspector *asynq.Inspector
	shards    int
	owner     redisscript.Installation
	known     atomic.Pointer[[]string] // names
	shares    shares
	announced atomic.Int64        // Unix seconds
	arming    *redisscript.Runner // its cooldown only: asynq has a way to Redis of its own
	probing   *redisscript.Runner
}

// New returns a queue that is spread over so many asynq queues by recipient, since one of them lives on one node of a
// cluster. Those of other installations are not touched. The caller closes rdb, after everything else.
func New(rdb redis.UniversalClient, shards int, owner redisscript.Installation) *Queue {
	return &Queue{
		rdb: rdb, client: asynq.NewClientFromRedisClient(rdb), inspector: asynq.NewInspectorFromRedisClient(rdb), shards: shards, owner: owner,
		arming:  redisscript.New(rdb, "arm", redisscript.Config{}),
		probing: redisscript.New(rdb, "probe", redisscript.Config{Timeout: 2 * time.Second}),
	}
}

// names are those of the shards. There are none until the installation is known.
func (q *Queue) names() []string {
	if names := q.known.Load(); names != nil {
		return *names
	}
	prefix, err := q.owner.Queue()
	if err != nil {
		return nil
	}
	var names []string
	for i := range q.shards {
		names = append(names, prefix+strconv.Itoa(i))
	}
	q.known.Store(&names)
	return names
}

// Arm puts wake-ups into the queue. One that is there already stays as it is. The error is [redisscript.ErrUnnamed],
// that of ctx, or that of Redis. If Redis fails, callers of the next second get [redisscript.ErrDown] at once; but
// not because the time for many wake-ups was too short.
func (q *Queue) Arm(ctx context.Context, wakeUps []push.WakeUp) error {
	switch {
	case q.arming.Left() > 0:
		return fmt.Errorf("arm: %w", redisscript.ErrDown)
	case q.names() == nil:
		return fmt.Errorf("arm: %w", redisscript.ErrUnnamed)
	}
	err := q.armAll(ctx, wakeUps)
	if err != nil && (len(wakeUps) <= 1 || ctx.Err() == nil) {
		q.arming.Fail(err)
	}
	return err
}

func (q *Queue) armAll(ctx context.Context, wakeUps []push.WakeUp) error {
	if err := q.announce(ctx); err != nil {
		return fmt.Errorf("arm: %w", err)
	}
	if len(wakeUps) == 1 {
		return q.arm(ctx, wakeUps[0])
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(goroutines)
	for _, w := range wakeUps {
		g.Go(func() error { return q.arm(ctx, w) })
	}
	return g.Wait()
}

// announce lists the queues where asynq's Inspector looks for them. asynq does so once per process, and a flush of
// Redis forgets it.
func (q *Queue) announce(ctx context.Context) error {
	now := time.Now().Unix()
	if q.announced.Swap(now) == now {
		return nil
	}
	var members []any
	for _, name := range q.all() {
		members = append(members, name)
	}
	return q.rdb.SAdd(ctx, allQueues, members...).Err()
}

func (q *Queue) arm(ctx context.Context, w push.WakeUp) error {
	payload, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("arm %s: %w", w.Push, err)
	}
	name := q.shard(w)
	if !q.shares.prompt(w, time.Now()) {
		if w.Again && q.wakes(name, w) {
			return nil
		}
		name = bulk(name)
	}
	err = q.enqueue(ctx, name, w, payload, taskID(w))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		if err = nil; !q.wakes(name, w) {
			err = q.enqueue(ctx, name, w, payload, fmt.Sprintf("%s:%d", taskID(w), time.Now().Unix()))
		}
	}
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("arm %s: %w", w.Push, err)
	}
	return nil
}

func (q *Queue) enqueue(ctx context.Context, name string, w push.WakeUp, payload []byte, id string) error {
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(taskType, payload), asynq.TaskID(id), asynq.Queue(name),
		asynq.ProcessAt(wakeAt(w, time.Now())), asynq.Timeout(10*time.Minute), asynq.MaxRetry(math.MaxInt32))
	return err
}

// wakeAt is when asynq is to wake a worker, by the workers' clocks, which may be wrong: at the time itself, or when as
// much time has passed by the clock of this process, whichever is earlier. A wake-up that comes too early comes again;
// one that comes too late makes the push late.
func wakeAt(w push.WakeUp, now time.Time) time.Time {
	if here := now.Add(w.In); here.Before(w.At) {
		return here
	}
	return w.At
}

// wakes reports whether the wake-up in the queue will wake a worker in time. One that asynq takes for active may belong
// to a killed worker, and come back only after a minute or two; one that waits may do so by a wrong clock. A second
// wake-up does no harm.
func (q *Queue) wakes(name string, w push.WakeUp) bool {
	task, err := q.inspector.GetTaskInfo(name, taskID(w))
	if err != nil {
		return false
	}
	waits := task.State == asynq.TaskStateScheduled || task.State == asynq.TaskStateRetry
	return task.State == asynq.TaskStatePending || waits && task.NextProcessAt.Before(wakeAt(w, time.Now()).Add(5*time.Second))
}

func taskID(w push.WakeUp) string { return fmt.Sprintf("%s:%d", w.Push, w.Gen) }

func (q *Queue) shard(w push.WakeUp) string {
	names := q.names()
	return names[uint64(w.RecipientKey)%uint64(len(names))]
}

// bulk is the queue beside a shard's for wake-ups of tenants that have very many for the same second. Workers look
// into both; so those of others need not wait behind them.
func bulk(shard string) string { return shard + "-bulk" }

// all lists the queues.
func (q *Queue) all() []string {
	names := q.names()
	all := slices.Clone(names)
	for _, name := range names {
		all = append(all, bulk(name))
	}
	return all
}

// Sizes counts the wake-ups by their state in asynq: pending, active, scheduled, retry.
func (q *Queue) Sizes() (map[string]int, error) {
	known, err := q.inspector.Queues()
	if err != nil {
		return nil, fmt.Errorf("queue sizes: %w", err)
	}
	sizes := map[string]int{}
	for _, name := range q.all() {
		if !slices.Contains(known, name) {
			continue // nothing was ever armed
		}
		info, err := q.inspector.GetQueueInfo(name)
		if err != nil {
			return nil, fmt.Errorf("queue sizes: %w", err)
		}
		sizes["pending"] += info.Pending
		sizes["active"] += info.Active
		sizes["scheduled"] += info.Scheduled
		sizes["retry"] += info.Retry
	}
	return sizes, nil
}

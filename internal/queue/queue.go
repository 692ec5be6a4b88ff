// Package queue wakes the workers: it puts wake-ups into asynq and calls a
// handler when their time has come. It is the only package that imports asynq.
//
// A wake-up decides nothing. asynq delivers it at least once, sometimes twice
// at the same time, up to a second early, and not at all if Redis loses it. All
// of that is harmless here, because whoever is woken asks Postgres.
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/push"
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
	names     []string
	announced atomic.Int64 // Unix seconds
	downUntil atomic.Int64 // Unix nanoseconds; until then Redis is left alone
}

// New returns a queue that is spread over so many asynq queues by recipient,
// since one of them lives on one node of a cluster. The caller closes rdb,
// after everything else.
func New(rdb redis.UniversalClient, shards int) *Queue {
	q := &Queue{rdb: rdb, client: asynq.NewClientFromRedisClient(rdb), inspector: asynq.NewInspectorFromRedisClient(rdb)}
	for i := range shards {
		q.names = append(q.names, fmt.Sprintf("push-%d", i))
	}
	return q
}

// ErrDown: Redis failed a moment ago and is left alone for now.
var ErrDown = errors.New("arm: Redis failed a moment ago")

// Arm puts wake-ups into the queue. One that is there already stays as it is.
// If Redis fails, callers of the next second are told so at once; but not because
// one who brings many has no patience left.
func (q *Queue) Arm(ctx context.Context, wakeUps []push.WakeUp) error {
	if time.Now().UnixNano() < q.downUntil.Load() {
		return ErrDown
	}
	err := q.armAll(ctx, wakeUps)
	if err != nil && (len(wakeUps) <= 1 || ctx.Err() == nil) {
		q.downUntil.Store(time.Now().Add(time.Second).UnixNano())
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

// announce lists the queues where asynq's Inspector looks for them. asynq does
// so once per process, and a flush of Redis forgets it.
func (q *Queue) announce(ctx context.Context) error {
	now := time.Now().Unix()
	if q.announced.Swap(now) == now {
		return nil
	}
	members := make([]any, len(q.names))
	for i, name := range q.names {
		members[i] = name
	}
	return q.rdb.SAdd(ctx, allQueues, members...).Err()
}

func (q *Queue) arm(ctx context.Context, w push.WakeUp) error {
	payload, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("arm %s: %w", w.Push, err)
	}
	err = q.enqueue(ctx, w, payload, taskID(w))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		if err = nil; !q.wakes(w) {
			err = q.enqueue(ctx, w, payload, fmt.Sprintf("%s:%d", taskID(w), time.Now().Unix()))
		}
	}
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("arm %s: %w", w.Push, err)
	}
	return nil
}

func (q *Queue) enqueue(ctx context.Context, w push.WakeUp, payload []byte, id string) error {
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(taskType, payload), asynq.TaskID(id), asynq.Queue(q.shard(w)),
		asynq.ProcessAt(wakeAt(w, time.Now())), asynq.Timeout(10*time.Minute), asynq.MaxRetry(math.MaxInt32))
	return err
}

// wakeAt is when asynq is to wake somebody, by the clocks of the workers, which
// may be wrong: at the time itself, or when as much time has passed by the clock
// of this process, whichever is earlier. A wake-up that comes too early comes
// again; one that comes too late makes the push late.
func wakeAt(w push.WakeUp, now time.Time) time.Time {
	if here := now.Add(w.In); here.Before(w.At) {
		return here
	}
	return w.At
}

// wakes reports whether the wake-up that is in the queue will wake somebody.
// One that asynq takes for active may be that of a killed worker, and come back
// only after a minute or two; one that waits may do so by a clock that is wrong.
// A second one does no harm.
func (q *Queue) wakes(w push.WakeUp) bool {
	task, err := q.inspector.GetTaskInfo(q.shard(w), taskID(w))
	if err != nil {
		return false
	}
	waits := task.State == asynq.TaskStateScheduled || task.State == asynq.TaskStateRetry
	return task.State == asynq.TaskStatePending || waits && task.NextProcessAt.Before(wakeAt(w, time.Now()).Add(5*time.Second))
}

// Works reports whether Redis does what the queue needs of it, in every shard:
// it runs scripts, and it writes. One that is out of memory, forbids scripts or
// is a replica answers a ping, but wakes nobody.
func (q *Queue) Works(ctx context.Context) error {
	pipe := q.rdb.Pipeline()
	for _, name := range q.names {
		pipe.Eval(ctx, `return redis.call('SET', KEYS[1], '', 'PX', 1000)`, []string{"sq:{" + name + "}:works"})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return nil
}

// Disarm takes a wake-up out of the queue, if it is still there and has not
// begun. A wake-up that stays does no harm.
func (q *Queue) Disarm(w push.WakeUp) {
	_ = q.inspector.DeleteTask(q.shard(w), taskID(w))
}

func taskID(w push.WakeUp) string { return fmt.Sprintf("%s:%d", w.Push, w.Gen) }

func (q *Queue) shard(w push.WakeUp) string {
	return q.names[uint64(w.RecipientKey)%uint64(len(q.names))]
}

// Sizes counts the wake-ups by their state in asynq: pending, active,
// scheduled, retry.
func (q *Queue) Sizes() (map[string]int, error) {
	known, err := q.inspector.Queues()
	if err != nil {
		return nil, fmt.Errorf("queue sizes: %w", err)
	}
	sizes := map[string]int{}
	for _, name := range q.names {
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

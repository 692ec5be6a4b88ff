// Package queue wakes the workers: it puts wake-ups into asynq and calls a handler when their time has come. It is the
// only package that imports asynq.
//
// A wake-up is for a lane and a moment, not for a push. So Redis holds a few of them, however many pushes there are. It
// decides nothing. asynq delivers it at least once, sometimes twice at the same time, up to two seconds early, and not
// at all if Redis loses it. All of that is harmless here, because a worker that is woken asks Postgres.
//
// The owner of a lane arms the moments that it has counted, with [Queue.Arm]. For pushes that are booked or deferred
// afterwards, a [Waker] gathers moments and arms them in the background.
package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
)

const (
	taskType   = "push:wake"
	allQueues  = "asynq:queues" // where asynq's Inspector finds the names of queues
	goroutines = 16             // asynq enqueues one task per round trip
)

// Queue puts wake-ups into asynq. It is safe for concurrent use.
type Queue struct {
	rdb       redisclient.Client
	put       func(ctx context.Context, payload []byte, o ...asynq.Option) error // a new task
	inspector inspector
	queues    int
	owner     redisscript.Installation
	known     atomic.Pointer[[]string] // names
	announced atomic.Int64             // Unix seconds
	arming    *redisscript.Runner      // its cooldown only: asynq has its own connection to Redis
	probing   *redisscript.Runner
}

// inspector is an [asynq.Inspector]. No field has a type of asynq that contains a client of go-redis: every package that
// names a Queue would compile that, see package redisclient.
type inspector interface {
	Queues() ([]string, error)
	GetQueueInfo(name string) (*asynq.QueueInfo, error)
	GetTaskInfo(name, id string) (*asynq.TaskInfo, error)
}

// New returns a queue that is spread over a number of asynq queues by lane, because one asynq queue lives on one node
// of a cluster. The queues of other installations are not touched. The caller closes rdb, after everything else.
func New(rdb redisclient.Client, queues int, owner redisscript.Installation) *Queue {
	shared := rdb.(redis.UniversalClient)
	client := asynq.NewClientFromRedisClient(shared)
	put := func(ctx context.Context, payload []byte, o ...asynq.Option) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, payload), o...)
		return err
	}
	return &Queue{
		rdb: rdb, put: put, inspector: asynq.NewInspectorFromRedisClient(shared), queues: queues, owner: owner,
		arming:  redisscript.New(rdb, "arm", redisscript.Config{}),
		probing: redisscript.New(rdb, "probe", redisscript.Config{Timeout: 2 * time.Second}),
	}
}

// names returns the names of the queues in asynq, or nil until the installation is known.
func (q *Queue) names() []string {
	if names := q.known.Load(); names != nil {
		return *names
	}
	prefix, err := q.owner.Queue()
	if err != nil {
		return nil
	}
	var names []string
	for i := range q.queues {
		names = append(names, prefix+"lane"+strconv.Itoa(i))
	}
	q.known.Store(&names)
	return names
}

// Arm puts wake-ups into the queue, so that a worker handles each after Arm was called. An unhandled wake-up for the
// same lane, moment and part stays as it is. The errors are [redisscript.ErrUnnamed], and the errors of ctx and of
// Redis; some wake-ups may be in the queue then. If Redis fails, callers of the next second get [redisscript.ErrDown]
// at once; but not if the time for many wake-ups was too short.
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

// announce adds the queues to the list that asynq's Inspector reads. asynq does so once per process, and a flush of
// Redis forgets it.
func (q *Queue) announce(ctx context.Context) error {
	now := time.Now().Unix()
	if q.announced.Swap(now) == now {
		return nil
	}
	var members []any
	for _, name := range q.names() {
		members = append(members, name)
	}
	return q.rdb.SAdd(ctx, allQueues, members...).Err()
}

func (q *Queue) arm(ctx context.Context, w push.WakeUp) error {
	name, id, payload := q.of(w.Lane), taskID(w), writeWakeUp(w)
	err := q.enqueue(ctx, name, w, payload, id)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		if q.wakes(name, id, w) {
			return nil
		}
		err = q.enqueue(ctx, name, w, payload, id+":"+uuid.NewString())
	}
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) { // the client has sent it twice
		return fmt.Errorf("arm lane %s: %w", w.Lane, err)
	}
	return nil
}

func (q *Queue) enqueue(ctx context.Context, name string, w push.WakeUp, payload []byte, id string) error {
	return q.put(ctx, payload, asynq.TaskID(id), asynq.Queue(name), asynq.ProcessAt(wakeAt(w, time.Now()).Add(-ahead)),
		asynq.Timeout(10*time.Minute), asynq.MaxRetry(math.MaxInt32))
}

// wakes reports whether the wake-up in the queue will wake a worker in time, and has not done so yet. An active wake-up
// may have asked Postgres before a push was there, or belong to a killed worker and come back only after a minute or
// two. A waiting one may follow a wrong clock. A second wake-up does no harm.
func (q *Queue) wakes(name, id string, w push.WakeUp) bool {
	task, err := q.inspector.GetTaskInfo(name, id)
	if err != nil {
		return false
	}
	waits := task.State == asynq.TaskStateScheduled || task.State == asynq.TaskStateRetry
	return task.State == asynq.TaskStatePending || waits && task.NextProcessAt.Before(wakeAt(w, time.Now()).Add(5*time.Second))
}

// of returns the name of a lane's queue.
func (q *Queue) of(lane push.Lane) string {
	names := q.names()
	return names[lane.First*len(names)/push.Shards]
}

// Sizes counts the wake-ups by their state in asynq: pending, active, scheduled, retry.
func (q *Queue) Sizes() (map[string]int, error) {
	known, err := q.inspector.Queues()
	if err != nil {
		return nil, fmt.Errorf("queue sizes: %w", err)
	}
	sizes := map[string]int{}
	for _, name := range q.names() {
		if !slices.Contains(known, name) {
			continue // no wake-up was ever armed
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

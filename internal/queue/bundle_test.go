package queue_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

const (
	tenth       = 100 * time.Millisecond
	concurrency = 8 // of serve
)

func TestMain(m *testing.M) {
	testenv.Overlap(8)
	testenv.Main(m)
}

// client connects as the programs do, but for its patience with a busy machine.
func client(t testing.TB, url string) redisclient.Client {
	t.Helper()
	return patient(t, url, time.Minute)
}

// patient returns a client as the programs use it, with a time-out of d.
func patient(t testing.TB, url string, d time.Duration) redisclient.Client {
	t.Helper()
	return testenv.RedisClient(t, url, func(o *redisclient.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries, o.ContextTimeoutEnabled = d, d, d, 1, true
	})
}

func setup(t testing.TB) *queue.Queue {
	t.Helper()
	return queue.New(client(t, testenv.Redis(t)), 3, nil)
}

// wakeUp is one that no other is equal to.
func wakeUp(in time.Duration) push.WakeUp {
	at := time.Now().UTC().Add(in).Truncate(time.Millisecond) // as precise as it travels
	return push.WakeUp{Lane: push.Lanes(4)[rand.IntN(4)], At: at, Part: rand.Int(), In: in}
}

// armed returns the wake-up that asynq has under an id.
func armed(t testing.TB, rdb redisclient.Client, name, id string) push.WakeUp {
	t.Helper()
	task, err := asynq.NewInspectorFromRedisClient(rdb.(redis.UniversalClient)).GetTaskInfo(name, id)
	if err != nil {
		t.Fatal(err)
	}
	var w struct{ First, Last, At, Part int64 }
	if err := json.Unmarshal(task.Payload, &w); err != nil {
		t.Fatal(err)
	}
	return push.WakeUp{Lane: push.Lane{First: int(w.First), Last: int(w.Last)}, At: time.UnixMilli(w.At).UTC(), Part: int(w.Part)}
}

// same reports whether two are for the same lane, moment and part.
func same(a, b push.WakeUp) bool { return a.Lane == b.Lane && a.At.Equal(b.At) && a.Part == b.Part }

func arm(t testing.TB, q *queue.Queue, wakeUps ...push.WakeUp) {
	t.Helper()
	if err := q.Arm(t.Context(), wakeUps); err != nil {
		t.Fatal(err)
	}
}

func sizes(t testing.TB, q *queue.Queue) map[string]int {
	t.Helper()
	s, err := q.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve handles wake-ups until the test ends, or until stop is called.
func serve(t testing.TB, q *queue.Queue, handle func(context.Context, push.WakeUp) error) (stop func()) {
	t.Helper()
	return serveAmong(t, nil, q, handle)
}

// serveAmong runs a worker that counts the given number of workers.
func serveAmong(t testing.TB, workers func() int, q *queue.Queue, handle func(context.Context, push.WakeUp) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- q.Serve(ctx, queue.ServerConfig{Concurrency: concurrency, Drain: 10 * time.Second, Workers: workers, Log: slog.New(slog.DiscardHandler)}, handle)
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// empty waits until no wake-up is left.
func empty(t testing.TB, q *queue.Queue) {
	t.Helper()
	eventually(t, "the queue is empty", func() bool {
		s := sizes(t, q)
		return s["pending"]+s["active"]+s["scheduled"]+s["retry"] == 0
	})
}

// eventually waits for a fact.
func eventually(t testing.TB, what string, fact func() bool) {
	t.Helper()
	testenv.Until(t, 2*time.Millisecond, what, fact)
}

package queue_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// client connects as the programs do: quick to give up.
func client(t testing.TB, url string) *redis.Client {
	t.Helper()
	return testenv.RedisClient(t, url, func(o *redis.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries, o.ContextTimeoutEnabled = time.Second, time.Second, time.Second, 1, true
	})
}

func setup(t testing.TB) *queue.Queue {
	t.Helper()
	return queue.New(client(t, testenv.Redis(t)), 3, nil)
}

func wakeUp(in time.Duration) push.WakeUp {
	return push.WakeUp{Push: uuid.New(), Gen: 1, RecipientKey: int64(uuid.New().ID()), At: time.Now().UTC().Add(in), In: in}
}

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
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- q.Serve(ctx, queue.ServerConfig{Concurrency: 8, Drain: 10 * time.Second, Log: slog.New(slog.DiscardHandler)}, handle)
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

// eventually waits for a fact.
func eventually(t testing.TB, what string, fact func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !fact(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

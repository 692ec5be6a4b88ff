package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestServe_Polls: an idle worker looks for pending wake-ups more often than for scheduled ones, which are early anyway.
func TestServe_Polls(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.OwnRedis(t).URL)
	serve(t, queue.New(rdb, 3, nil), func(context.Context, push.WakeUp) error { return nil })
	pending := 0
	testenv.Until(t, 50*time.Millisecond, "the worker has looked a few hundred times", func() bool {
		pending = calls(t, rdb, "rpoplpush")
		return pending >= 300
	})
	if scheduled := calls(t, rdb, "zrangebyscore"); scheduled == 0 || scheduled > pending {
		t.Errorf("the worker looked %d times for pending wake-ups, and %d times for scheduled ones and those to be tried again", pending, scheduled)
	}
}

// calls is how often a Redis has run a command.
func calls(t *testing.T, rdb *redis.Client, command string) (n int) {
	t.Helper()
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	testenv.Check(t, err)
	if _, after, ok := strings.Cut(stats, "cmdstat_"+command+":calls="); ok {
		_, err := fmt.Sscanf(after, "%d", &n)
		testenv.Check(t, err)
	}
	return n
}

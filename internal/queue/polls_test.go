package queue_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestServe_Polls: an idle worker polls for pending wake-ups more often than for scheduled ones, which are early
// anyway.
func TestServe_Polls(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.OwnRedis(t).URL)
	serve(t, queue.New(rdb, 3, nil), func(context.Context, push.WakeUp) error { return nil })
	pending := 0
	testenv.Until(t, 50*time.Millisecond, "the worker has polled a few hundred times", func() bool {
		pending = calls(t, rdb, "rpoplpush")
		return pending >= 300
	})
	if scheduled := calls(t, rdb, "zrangebyscore"); scheduled == 0 || scheduled > pending {
		t.Errorf("the worker polled %d times for pending wake-ups, and %d times for scheduled ones and retries", pending, scheduled)
	}
}

// TestServe_PollsOfFleet: the more workers there are, the less often each of them polls, so that an idle Redis runs
// less than proportionally more scripts. Yet a wake-up is found no later.
func TestServe_PollsOfFleet(t *testing.T) {
	t.Parallel()
	scripts, waits := map[int]int{}, map[int]time.Duration{}
	for _, workers := range []int{1, 4, 10} {
		synctest.Test(t, func(t *testing.T) {
			idle := &idleRedis{}
			q := queue.New(idle.client(t), 1, nil)
			for range workers {
				serveAmong(t, func() int { return workers }, q, func(context.Context, push.WakeUp) error { return nil })
			}
			time.Sleep(time.Minute)
			scripts[workers], waits[workers] = idle.scripts(), idle.wait()
		})
	}
	t.Logf("scripts in a minute: %v; from the arming to the next poll, in the mean: %v", scripts, waits)
	if scripts[4] > 3*scripts[1] || scripts[10] > 5*scripts[1] || scripts[10] < scripts[1] {
		t.Errorf("1, 4 and 10 workers run %d, %d and %d scripts a minute", scripts[1], scripts[4], scripts[10])
	}
	if waits[4] > waits[1] || waits[10] > waits[1] {
		t.Errorf("a wake-up waits for %s with one worker, %s with four and %s with ten", waits[1], waits[4], waits[10])
	}
}

// idleRedis answers, on the clock of a bubble, as a Redis without wake-ups. It records the polls of asynq's servers.
type idleRedis struct {
	mu        sync.Mutex
	pending   []time.Time // polls for pending wake-ups
	scheduled int         // polls for scheduled ones and retries
}

func (r *idleRedis) client(t *testing.T) redisclient.Client {
	t.Helper()
	rdb := redisclient.Open(redisclient.Options{Addrs: []string{"127.0.0.1:1"}})
	rdb.(redis.UniversalClient).AddHook(r)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// DialHook refuses the connection for SUBSCRIBE, which asynq tries again.
func (*idleRedis) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}

func (r *idleRedis) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { return r.answer(cmd) }
}

func (r *idleRedis) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = r.answer(cmd)
		}
		return nil
	}
}

func (r *idleRedis) answer(cmd redis.Cmder) error {
	script, ok := cmd.(*redis.Cmd)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	script.SetVal(int64(0))
	switch keys := fmt.Sprint(script.Args()...); {
	case strings.Contains(keys, ":paused"):
		r.pending = append(r.pending, time.Now())
		script.SetErr(redis.Nil)
	case strings.Contains(keys, ":scheduled"), strings.Contains(keys, ":retry"):
		r.scheduled++
	}
	return script.Err()
}

// scripts returns the number of polls.
func (r *idleRedis) scripts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending) + r.scheduled
}

// wait returns the mean time from any moment to the next poll for pending wake-ups.
func (r *idleRedis) wait() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum float64 // over each pause: its length, times half of it
	for i, at := range r.pending[1:] {
		pause := at.Sub(r.pending[i]).Seconds()
		sum += pause * pause / 2
	}
	return time.Duration(sum / r.pending[len(r.pending)-1].Sub(r.pending[0]).Seconds() * float64(time.Second))
}

// TestServe_PollsLessOften: a worker that learns of others polls less often from then on.
func TestServe_PollsLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		idle := &idleRedis{}
		var workers atomic.Int64
		workers.Store(1)
		serveAmong(t, func() int { return int(workers.Load()) }, queue.New(idle.client(t), 1, nil), func(context.Context, push.WakeUp) error { return nil })
		time.Sleep(time.Minute)
		alone := idle.scripts()
		workers.Store(100)
		time.Sleep(10 * time.Second) // until it knows
		before := idle.scripts()
		time.Sleep(time.Minute)
		if among := idle.scripts() - before; among == 0 || among >= alone/3 {
			t.Errorf("it runs %d scripts a minute alone, and %d among a hundred", alone, among)
		}
	})
}

// begun returns the number of registered workers.
func begun(t *testing.T, rdb redisclient.Client) int {
	t.Helper()
	n, err := rdb.ZCard(t.Context(), "asynq:servers").Result()
	testenv.Check(t, err)
	return int(n)
}

// TestServe_FleetGrows: a worker that learns of others, and polls less often from then on, finishes what it has begun, once.
func TestServe_FleetGrows(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.OwnRedis(t).URL)
	q := queue.New(rdb, 1, nil)
	var workers, handled atomic.Int64
	workers.Store(1)
	proceed := make(chan struct{})
	serveAmong(t, func() int { return int(workers.Load()) }, q, func(_ context.Context, w push.WakeUp) error {
		if w.Part == 0 {
			<-proceed
		}
		handled.Add(1)
		return nil
	})
	testenv.Check(t, q.Arm(t.Context(), []push.WakeUp{{At: time.Now()}}))
	testenv.Until(t, 10*time.Millisecond, "the first server has the wake-up", func() bool { return sizes(t, q)["active"] == 1 && begun(t, rdb) == 1 })
	workers.Store(100)
	testenv.Until(t, 10*time.Millisecond, "a server that polls less often has begun", func() bool { return begun(t, rdb) == 2 })
	testenv.Check(t, q.Arm(t.Context(), []push.WakeUp{{At: time.Now(), Part: 1}}))
	testenv.Until(t, 50*time.Millisecond, "the new wake-up is handled", func() bool { return handled.Load() == 1 })
	close(proceed)
	testenv.Until(t, 50*time.Millisecond, "the old wake-up is handled", func() bool { return handled.Load() == 2 })
	empty(t, q)
	if n := handled.Load(); n != 2 {
		t.Errorf("2 wake-ups were handled %d times", n)
	}
}

// calls returns how often a Redis has run a command.
func calls(t *testing.T, rdb redisclient.Client, command string) (n int) {
	t.Helper()
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	testenv.Check(t, err)
	if _, after, ok := strings.Cut(stats, "cmdstat_"+command+":calls="); ok {
		_, err := fmt.Sscanf(after, "%d", &n)
		testenv.Check(t, err)
	}
	return n
}

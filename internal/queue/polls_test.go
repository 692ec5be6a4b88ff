package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	var why string
	for range 5 { // other programs on the machine can delay one of the fleets
		if why = comparedFleets(t); why == "" {
			return
		}
		t.Log(why)
	}
	t.Error(why)
}

// comparedFleets compares fleets of 1, 4 and 10 workers, and returns what is wrong, or "".
func comparedFleets(t *testing.T) string {
	scripts, delays := map[int]float64{}, map[int]time.Duration{} // these are medians
	for _, workers := range []int{1, 4, 10} {
		rdb := client(t, testenv.OwnRedis(t).URL)
		q := queue.New(rdb, 1, nil)
		handled := make(chan struct{}, 1)
		var stops []func()
		for range workers {
			stops = append(stops, serveAmong(t, func() int { return workers }, q, func(context.Context, push.WakeUp) error {
				handled <- struct{}{}
				return nil
			}))
		}
		testenv.Until(t, 10*time.Millisecond, "all have begun", func() bool { return begun(t, rdb) == workers })
		before, began := calls(t, rdb, "evalsha"), time.Now()
		time.Sleep(1500 * time.Millisecond)
		scripts[workers] = float64(calls(t, rdb, "evalsha")-before) / time.Since(began).Seconds()
		waited := make([]time.Duration, 21)
		for i := range waited {
			time.Sleep(time.Duration(i*7%50) * time.Millisecond) // at any moment between two polls
			armed := time.Now()
			testenv.Check(t, q.Arm(t.Context(), []push.WakeUp{{At: armed, Part: i}}))
			<-handled
			waited[i] = time.Since(armed)
		}
		slices.Sort(waited)
		delays[workers] = waited[len(waited)/2]
		for _, stop := range stops {
			stop()
		}
	}
	t.Logf("scripts a second: %v; from the arming to the handler: %v", scripts, delays)
	if scripts[4] > 3*scripts[1] || scripts[10] > 5*scripts[1] || scripts[10] < scripts[1] {
		return fmt.Sprintf("1, 4 and 10 workers run %.0f, %.0f and %.0f scripts a second", scripts[1], scripts[4], scripts[10])
	}
	if most := 4 * delays[1]; delays[4] > most || delays[10] > most {
		return fmt.Sprintf("a wake-up waits for %s with one worker, %s with four and %s with ten", delays[1], delays[4], delays[10])
	}
	return ""
}

// begun returns the number of registered workers.
func begun(t *testing.T, rdb redisclient.Client) int {
	t.Helper()
	n, err := rdb.ZCard(t.Context(), "asynq:servers").Result()
	testenv.Check(t, err)
	return int(n)
}

// TestServe_FleetGrows: a worker that learns of others polls less often from then on, and finishes what it has begun,
// once.
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
	rate := func() float64 {
		before, began := calls(t, rdb, "evalsha"), time.Now()
		time.Sleep(500 * time.Millisecond)
		return float64(calls(t, rdb, "evalsha")-before) / time.Since(began).Seconds()
	}
	alone := rate()
	workers.Store(100)
	testenv.Until(t, 50*time.Millisecond, "it polls less often", func() bool { return rate() < alone/3 })
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

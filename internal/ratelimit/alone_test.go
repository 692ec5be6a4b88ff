package ratelimit

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTake_LoneCaller: a lone caller has its decision after one exchange, and waits for no other callers before it.
func TestTake_LoneCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked counted
		rdb := redisclient.Open(redisclient.Options{Addrs: []string{"127.0.0.1:1"}})
		rdb.(redis.UniversalClient).AddHook(&asked)
		defer rdb.Close()
		ours := New(rdb, strict(t))
		for n := range 300 {
			for _, l := range classics() {
				before, began := asked, time.Now()
				if _, err := ours.Take(t.Context(), strconv.Itoa(n), 1, Rule{Subject: "anna", Limit: l}); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(began); waited != 0 || asked != before+1 { // by the clock of the bubble
					t.Fatalf("%s: the caller waited for %s, and for %d exchanges", l.Algorithm, waited, asked-before)
				}
			}
		}
	})
}

// counted counts exchanges, and answers each at once.
type counted int

func (*counted) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}

func (c *counted) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		*c++
		cmd.(*redis.IntSliceCmd).SetVal(make([]int64, answerSize))
		return nil
	}
}

func (c *counted) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return net.ErrClosed } // one call needs no pipeline
}

// TestTake_Commands: a decision costs Redis as many commands as one of redis_rate, within its script as well. If the limit
// keeps a log or two windows, it costs one more.
func TestTake_Commands(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.OwnRedis(t).URL)
	ours, theirs := New(rdb, strict(t)), redis_rate.NewLimiter(rdb)
	cost := func(decide func(subject string) error) int {
		const decisions = 20
		testenv.Check(t, decide("first")) // loads the script
		before := commands(t, rdb)
		for n := range decisions {
			testenv.Check(t, decide(strconv.Itoa(n)))
		}
		return (commands(t, rdb) - before) / decisions
	}
	reference := cost(func(subject string) error {
		_, err := theirs.Allow(t.Context(), subject, redis_rate.PerMinute(10))
		return err
	})
	for _, l := range classics() {
		n := cost(func(subject string) error {
			_, err := ours.Take(t.Context(), subject, 1, Rule{Subject: subject, Limit: l})
			return err
		})
		most := reference
		if l.Algorithm == SlidingLog || l.Algorithm == SlidingWindow { // these keep more than one number
			most++
		}
		if n > most {
			t.Errorf("%s costs %d commands, redis_rate costs %d", l.Algorithm, n, reference)
		}
	}
}

// commands returns how many commands a Redis has run, but for INFO.
func commands(t *testing.T, rdb redisclient.Client) (n int) {
	t.Helper()
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	testenv.Check(t, err)
	for line := range strings.Lines(stats) {
		name, after, ok := strings.Cut(line, ":calls=")
		if !ok || name == "cmdstat_info" {
			continue
		}
		var calls int
		_, err := fmt.Sscanf(after, "%d", &calls)
		testenv.Check(t, err)
		n += calls
	}
	return n
}

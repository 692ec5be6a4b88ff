package redisscript_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// onCluster is a runner on a cluster, whose client by itself does not ask again which node has which keys.
func onCluster(t *testing.T, cooldown time.Duration) (*testenv.Cluster, *redisscript.Runner) {
	t.Helper()
	c := testenv.ReplicatedCluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(c.Addrs(), ","), ClusterStateReloadInterval: time.Hour, DialerRetries: 1, MaxRetries: 1, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return c, redisscript.New(rdb, "test", redisscript.Config{Timeout: time.Minute, Cooldown: cooldown})
}

// TestRun_ClusterFailover: when the replica of a lost master has taken over, calls find it, also those that are sent once,
// and those that are sent together with others.
func TestRun_ClusterFailover(t *testing.T) {
	t.Parallel()
	keys := []string{"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"}
	for name, run := range map[string]func(context.Context, *redisscript.Runner) error{
		"together": func(ctx context.Context, r *redisscript.Runner) error {
			var calls []redisscript.Call
			for _, key := range keys {
				calls = append(calls, count.Call([]string{key}, 1))
			}
			_, err := r.RunAll(ctx, calls...)
			return err
		},
		"once": func(ctx context.Context, r *redisscript.Runner) error {
			call := count.Call([]string{keys[0]}, 1)
			call.Once = true
			_, err := r.Run(ctx, call)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := onCluster(t, time.Millisecond)
			testenv.Check(t, run(t.Context(), r))
			master := c.MasterOf(keys[0])
			testenv.Check(t, c.Nodes[master].Kill())
			if err := run(t.Context(), r); err == nil {
				t.Error("the lost master has answered")
			}
			c.Promote(master)
			testenv.Until(t, 20*time.Millisecond, "the replica is asked", func() bool { return run(t.Context(), r) == nil })
		})
	}
}

// TestRun_ClusterMovesKeys: while a cluster moves the keys of a call, that call fails, and no other.
func TestRun_ClusterMovesKeys(t *testing.T) {
	t.Parallel()
	c, r := onCluster(t, time.Hour)
	both := redisscript.NewScript(`return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}`).Call([]string{"{a}1", "{a}2"})
	_, err := r.Run(t.Context(), both)
	testenv.Check(t, err)
	from := c.MasterOf("{a}1")
	to := (from + 1) % 3
	end := c.BeginMove(c.SlotOf("{a}1"), from, to)
	c.MoveKey("{a}1", from, to)
	if _, err := r.Run(t.Context(), both); err == nil || !redis.HasErrorPrefix(err, "TRYAGAIN") || r.Left() > 0 {
		t.Errorf("one key of two has moved: %v, cooldown %s", err, r.Left())
	}
	for i, key := range []string{"{a}1", "{a}2", "{b}"} {
		if answer, err := r.Run(t.Context(), count.Call([]string{key}, 1)); err != nil || answer[1] != []int64{2, 2, 1}[i] {
			t.Errorf("%s: %v, %v", key, answer, err)
		}
	}
	end()
	if answer, err := r.Run(t.Context(), both); err != nil || !slices.Equal(answer, []int64{3, 3}) {
		t.Errorf("after the move: %v, %v", answer, err)
	}
}

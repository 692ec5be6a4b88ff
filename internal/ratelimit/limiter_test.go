package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// rulesOf are the limits, for one subject.
func rulesOf(subject string, ls ...Limit) []Rule {
	var rules []Rule
	for _, l := range ls {
		rules = append(rules, Rule{Subject: subject, Limit: l})
	}
	return rules
}

// TestTake_AllOrNone: many take at once from two limits. As many pass as the stricter one allows, and the looser one is
// charged exactly as often.
func TestTake_AllOrNone(t *testing.T) {
	t.Parallel()
	l, _ := setupReal(t)
	strict := Limit{Algorithm: SlidingLog, Limit: 37, Per: time.Hour}
	for _, loose := range []Limit{
		{Algorithm: TokenBucket, Limit: 1, Per: MaxPer / 100, Burst: 50}, {Algorithm: LeakyBucket, Limit: 1, Per: MaxPer / 100, Burst: 50},
		{Algorithm: SlidingLog, Limit: 50, Per: time.Hour}, {Algorithm: SlidingWindow, Limit: 50, Per: time.Hour}, {Algorithm: FixedWindow, Limit: 50, Per: MaxPer},
	} {
		t.Run(string(loose.Algorithm), func(t *testing.T) {
			t.Parallel()
			rules := []Rule{{Subject: "anna", Limit: loose}, {Subject: string(loose.Algorithm), Limit: strict}}
			var passed atomic.Int64
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					for range 3 {
						d, err := l.Take(t.Context(), "tag", 1, rules...)
						if err != nil {
							t.Error(err)
						}
						if d.Allowed {
							passed.Add(1)
						}
						if d.Allowed != (d.Results[0].Allowed && d.Results[1].Allowed) {
							t.Errorf("%+v", d)
						}
					}
				})
			}
			all.Wait()
			if passed.Load() != 37 {
				t.Errorf("%d passed", passed.Load())
			}
			d, err := l.Peek(t.Context(), "tag", 1, rules...)
			if err != nil || d.Allowed || d.Results[0].Remaining != 50-37 || !d.Results[0].Allowed || d.Results[1].Remaining != 0 {
				t.Errorf("afterwards: %+v, %v", d, err)
			}
		})
	}
}

// dump returns everything in Redis, with the expiry of each key.
func dump(t testing.TB, rdb redisclient.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		all[key] = fmt.Sprint(rdb.PExpireTime(t.Context(), key).Val(), rdb.Dump(t.Context(), key).Val())
	}
	return all
}

// TestPeek_NoTrace: neither a peek nor a refusal changes anything.
func TestPeek_NoTrace(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	rules := rulesOf("anna", variants()...)
	for name, take := range map[string]func() (Decision, error){
		"peek":             func() (Decision, error) { return l.Peek(t.Context(), "tag", 1, rules...) },
		"refused":          func() (Decision, error) { return l.Take(t.Context(), "tag", 11, rules...) },
		"refused by one":   func() (Decision, error) { return l.Take(t.Context(), "tag", 2, rules...) },
		"a cost of 0":      func() (Decision, error) { return l.Take(t.Context(), "tag", 0, rules...) },
		"a dry run for 10": func() (Decision, error) { return l.Peek(t.Context(), "tag", 10, rules...) },
	} {
		if _, err := take(); err != nil {
			t.Fatal(name, err)
		}
		if left := dump(t, rdb); len(left) != 0 {
			t.Errorf("%s leaves %q", name, slices.Collect(maps.Keys(left)))
		}
	}
	if d, err := l.Take(t.Context(), "tag", 1, rules...); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	before := dump(t, rdb)
	if len(before) != len(rules) {
		t.Fatalf("%d keys", len(before))
	}
	for range 3 {
		if d, err := l.Take(t.Context(), "tag", 1, rules...); err != nil || d.Allowed {
			t.Fatal(d, err) // the leaky bucket is full
		}
		if _, err := l.Peek(t.Context(), "tag", 1, rules...); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, dump(t, rdb)); diff != "" {
		t.Error(diff)
	}
}

// TestKeys_Expire: keys live as long as they matter, and no longer.
func TestKeys_Expire(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	var rules []Rule
	for _, limit := range append(variants(), Limit{Algorithm: TokenBucket, Limit: 1, Burst: 3, Refill: Interval}) {
		limit.Per = time.Second
		rules = append(rules, Rule{Subject: "anna", Limit: limit})
	}
	for range 2 {
		for _, rule := range rules {
			began := time.Now()
			d, err := l.Take(t.Context(), "tag", 1, rule)
			if err != nil {
				t.Fatal(err)
			}
			left := rdb.PTTL(t.Context(), "sq:"+slotOf("tag")+keyOf(Rule{Subject: "anna", Limit: rule.Limit.WithDefaults()})).Val()
			if reset := d.Results[0].ResetAfter; left > reset+3*time.Millisecond || left < reset-time.Since(began)-time.Millisecond {
				t.Errorf("%s: lives for %s, and matters for %s", rule.Limit.Algorithm, left, d.Results[0].ResetAfter)
			}
		}
	}
	testenv.Until(t, 10*time.Millisecond, "no key stays", func() bool { return len(rdb.Keys(t.Context(), "*").Val()) == 0 })
}

// TestKeys_BoundedUnderLoad: a subject that never rests keeps no more than what matters.
func TestKeys_BoundedUnderLoad(t *testing.T) {
	t.Parallel()
	p := setup(t)
	log := Limit{Algorithm: SlidingLog, Limit: 20, Per: time.Second}
	window := Limit{Algorithm: SlidingWindow, Limit: 20, Per: time.Second, Precision: 10 * time.Millisecond}
	for n := range int64(1000) {
		p.at(t, start+n*50_000)
		if !p.take(t, "anna", log, 1).Allowed || n%2 == 0 && !p.take(t, "anna", window, 1).Allowed {
			t.Fatal("refused")
		}
	}
	key := func(l Limit) string { return "sq:" + slotOf("story") + keyOf(Rule{Subject: "anna", Limit: l}) }
	if n, m := p.rdb.LLen(t.Context(), key(log)).Val(), p.rdb.LLen(t.Context(), key(window)).Val(); n != 20 || m > 11 {
		t.Errorf("%d instants and %d steps are kept", n, m)
	}
}

// TestTake_RealClock: the scripts that programs run read Redis' clock, and an answer holds in real time.
func TestTake_RealClock(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	log := Rule{Subject: "anna", Limit: Limit{Algorithm: SlidingLog, Limit: 1, Per: time.Hour}}
	before := rdb.Time(t.Context()).Val()
	if _, err := l.Take(t.Context(), "tag", 1, log); err != nil {
		t.Fatal(err)
	}
	end, _, _ := strings.Cut(rdb.LIndex(t.Context(), "sq:"+slotOf("tag")+keyOf(log), 0).Val(), " ")
	micros, err := strconv.ParseInt(end, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMicro(micros).Add(-time.Hour)
	if after := rdb.Time(t.Context()).Val(); at.Before(before) || at.After(after) {
		t.Errorf("written down at %s, and it was between %s and %s", at, before, after)
	}
	for _, limit := range variants() {
		limit.Limit, limit.Per = 1, 200*time.Millisecond
		for n := 0; n < 3; {
			d, err := l.Take(t.Context(), "tag", 1, Rule{Subject: "bert", Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				n++
				continue
			}
			time.Sleep(d.Results[0].RetryAfter)
			if d, err = l.Take(t.Context(), "tag", 1, Rule{Subject: "bert", Limit: limit}); err != nil || !d.Allowed {
				t.Fatalf("%s: %+v after waiting as told, %v", limit.Algorithm, d, err)
			}
			n++
		}
	}
}

// TestKeys_NoNames: keys have a fixed shape, without the names.
func TestKeys_NoNames(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	shape := regexp.MustCompile(`^sq:limit:\{[A-Za-z0-9_-]{22}\}:[A-Za-z0-9_-]{16}$`)
	for _, name := range []string{"a", "anna@example.com", strings.Repeat("long", 64), "{}:*", "\x00\xff"} {
		if _, err := l.Take(t.Context(), name, 1, rulesOf(name, variants()...)...); err != nil {
			t.Fatal(err)
		}
	}
	keys := rdb.Keys(t.Context(), "*").Val()
	if len(keys) != 35 {
		t.Errorf("%d keys", len(keys))
	}
	for _, key := range keys {
		if !shape.MatchString(key) {
			t.Errorf("key %q", key)
		}
	}
}

// TestTake_Cluster: every algorithm, several together, on three nodes.
func TestTake_Cluster(t *testing.T) {
	t.Parallel()
	rdb := redisclient.Open(redisclient.Options{Addrs: strings.Split(testenv.RedisCluster(t), ",")})
	t.Cleanup(func() { _ = rdb.Close() })
	l := New(rdb, strict(t))
	var passed atomic.Int64
	var all sync.WaitGroup
	for n := range 30 {
		for range 4 {
			all.Go(func() {
				limits := variants()
				for i := range limits {
					limits[i].Limit, limits[i].Per, limits[i].Burst = 2, MaxPer, 0
				}
				limits[4].Burst = 2
				d, err := l.Take(t.Context(), fmt.Sprint("tag-", n), 1, rulesOf("anna", limits...)...)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					passed.Add(1)
				}
			})
		}
	}
	all.Wait()
	if passed.Load() != 60 {
		t.Errorf("%d passed, of 2 for each of 30 tags", passed.Load())
	}
	nodes := atomic.Int64{}
	if err := redisclient.ForEachMaster(t.Context(), rdb, func(ctx context.Context, node redis.Cmdable) error {
		if node.DBSize(ctx).Val() > 0 {
			nodes.Add(1)
		}
		return nil
	}); err != nil || nodes.Load() != 3 {
		t.Errorf("keys on %d nodes, %v", nodes.Load(), err)
	}
}

// TestLimiter_WithoutRedis: no decision. One caller per second finds out that it is still away, and no other waits.
func TestLimiter_WithoutRedis(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]struct{ stop, start func(*devstack.Server) error }{
		"hangs":   {(*devstack.Server).Pause, (*devstack.Server).Resume},
		"is dead": {(*devstack.Server).Kill, func(s *devstack.Server) error { return s.Restart(context.Background()) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.OwnRedis(t)
			var clock, failures atomic.Int64
			l := New(client(t, server.URL), Config{Config: redisscript.Config{Timeout: 500 * time.Millisecond, OnError: func(error) { failures.Add(1) }, Now: func() time.Time { return time.Unix(clock.Load(), 0) }}})
			rules := rulesOf("anna", classics()...)
			gone := func() {
				t.Helper()
				if _, err := l.Take(t.Context(), "tag", 1, rules...); !errors.Is(err, ErrUnavailable) {
					t.Errorf("error %v", err)
				}
			}
			there := func() {
				t.Helper()
				testenv.Until(t, 10*time.Millisecond, "Redis answers", func() bool { // which a busy machine may let take too long
					clock.Add(1)
					d, err := l.Peek(t.Context(), "tag", 1, rules...)
					return err == nil && d.Allowed
				})
			}
			there()
			failures.Store(0)
			if err := away.stop(server); err != nil {
				t.Fatal(err)
			}
			gone()
			for range 1000 {
				gone() // it is not asked
			}
			if failures.Load() != 1 {
				t.Errorf("asked %d times", failures.Load())
			}
			clock.Add(1)
			gone()
			if err := away.start(server); err != nil {
				t.Fatal(err)
			}
			there()
		})
	}
}

// TestLimiter_BrokenKey: what concerns one subject does not concern others, and scripts that Redis has forgotten are
// sent again.
func TestLimiter_BrokenKey(t *testing.T) {
	t.Parallel()
	rdb := patient(t, testenv.OwnRedis(t).URL)
	l := New(rdb, Config{Config: redisscript.Config{Timeout: time.Minute}})
	rules := rulesOf("anna", classics()...)
	odd, strange := rules[0], rules[3]
	strange.Limit = strange.Limit.WithDefaults()
	rdb.LPush(t.Context(), "sq:"+slotOf("odd")+keyOf(odd), "what is this?")
	rdb.Set(t.Context(), "sq:"+slotOf("odd")+keyOf(strange), "and this?", 0)
	var all sync.WaitGroup
	for n := range 100 {
		if n%30 == 0 {
			rdb.ScriptFlush(t.Context())
		}
		all.Go(func() {
			if _, err := l.Take(t.Context(), "odd", 1, odd); !errors.Is(err, ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "WRONGTYPE") {
				t.Errorf("odd: %v", err)
			}
			if _, err := l.Take(t.Context(), "odd", 1, strange); !errors.Is(err, ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "user_script") {
				t.Errorf("strange: %v", err)
			}
		})
		all.Go(func() {
			if d, err := l.Take(t.Context(), fmt.Sprint(n), 1, rules[n%5:]...); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	all.Wait()
}

// TestLimiter_RedisIsFull: nothing is charged, not even in part, and all callers get the error at once.
func TestLimiter_RedisIsFull(t *testing.T) {
	t.Parallel()
	rdb := client(t, testenv.OwnRedis(t).URL)
	var failures atomic.Int64
	l := New(rdb, Config{Config: redisscript.Config{Timeout: time.Minute, OnError: func(error) { failures.Add(1) }, Now: func() time.Time { return time.Unix(0, 0) }}})
	rules := rulesOf("anna", classics()...)
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if d, err := l.Take(t.Context(), "tag", 1, rules...); !errors.Is(err, ErrUnavailable) || d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 0 || failures.Load() != 1 {
		t.Errorf("%d keys, %d failures reported", n, failures.Load())
	}
}

// TestTake_LostReply: the client asks again. The cost is charged twice, and the limit holds.
func TestTake_LostReply(t *testing.T) {
	t.Parallel()
	w, through := testenv.Proxy(t, testenv.OwnRedis(t).URL)
	l := New(client(t, through), strict(t))
	rule := Rule{Subject: "anna", Limit: Limit{Algorithm: SlidingLog, Limit: 3, Per: time.Hour}}
	if _, err := l.Peek(t.Context(), "tag", 1, rule); err != nil {
		t.Fatal(err)
	}
	w.Lose(1, "*4\r\n:1\r\n:1\r\n") // allowed, and one is used
	d, err := l.Take(t.Context(), "tag", 1, rule)
	if lost := w.Lost(); lost != 1 {
		t.Fatalf("%d replies were lost: nothing was tested", lost)
	}
	if err != nil || !d.Allowed || d.Results[0].Remaining != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = l.Take(t.Context(), "tag", 2, rule); err != nil || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTake_WrongCalls(t *testing.T) {
	t.Parallel()
	l, rdb := setupReal(t)
	ok := Rule{Subject: "anna", Limit: classics()[0]}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, take := range map[string]func() (Decision, error){
		"negative": func() (Decision, error) { return l.Take(t.Context(), "tag", -1, ok) },
		"invalid": func() (Decision, error) {
			return l.Take(t.Context(), "tag", 1, ok, Rule{Subject: "anna", Limit: Limit{}})
		},
		"over": func() (Decision, error) { return l.Take(over, "tag", 1, ok) },
	} {
		if d, err := take(); err == nil || errors.Is(err, ErrUnavailable) || d.Allowed || rdb.DBSize(t.Context()).Val() > 0 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/testenv"
)

// clusterConfig spreads the queue over the nodes, and uses Redis for everything that it is for: the queue, the cache, the
// limits of callers, and the pace of a channel.
var clusterConfig = strings.NewReplacer(
	"delivery: {", "delivery: {queues: 8, ",
	"channels:", `channels:
  paced: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1m, throughput: {rate: 100, per: 1s}}`,
).Replace(redisConfig) + "api_limits: {per_ip: [{algorithm: fixed_window, limit: 1000000, per: 1h}]}\n"

// clusterBundle is an installation on a cluster.
type clusterBundle struct {
	*bundle
	cluster *testenv.Cluster
	rdb     *redis.ClusterClient
}

func setupCluster(t *testing.T, url func(*testenv.Cluster) string, config string) *clusterBundle {
	t.Helper()
	c := testenv.ReplicatedCluster(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(c.Addrs(), ",")})
	t.Cleanup(func() { _ = rdb.Close() })
	return &clusterBundle{bundle: setupWith(t, options{redis: url(c), config: config}), cluster: c, rdb: rdb}
}

// oneEndpoint names one node, which knows the others.
func oneEndpoint(c *testenv.Cluster) string {
	addr, _, _ := strings.Cut(c.Addrs(), ",")
	return "redis-cluster://" + addr
}

// masterOfQueue is the number of the master that has a queue.
func (b *clusterBundle) masterOfQueue() int {
	b.t.Helper()
	queues := b.rdb.SMembers(b.t.Context(), "asynq:queues").Val()
	if len(queues) == 0 {
		b.t.Fatal("no queue was announced")
	}
	return b.cluster.MasterOf("asynq:{" + queues[0] + "}:pending")
}

// TestRedisCluster_NodeLost: while a master is gone and has no successor, and when its replica has taken over, all holds that
// TestRedisFaults wants: answers are exact, nothing is lost or leaves twice, and all returns to normal by itself.
func TestRedisCluster_NodeLost(t *testing.T) {
	t.Parallel()
	b, master := setupCluster(t, (*testenv.Cluster).Addrs, clusterConfig), 0
	trial := newRedisTrial(&ownRedis{t: t}, b.bundle)
	trial.meets(redisFault{
		name: "node lost", oneNode: true,
		begin: func(r *ownRedis) {
			master = b.masterOfQueue()
			r.must(b.cluster.Nodes[master].Kill())
		},
		end: func(*ownRedis) { b.cluster.Promote(master) },
	})
	trial.ends()
}

// TestRedisSentinel_MasterLost: the same with a master that sentinels watch, and its replica.
func TestRedisSentinel_MasterLost(t *testing.T) {
	t.Parallel()
	s := testenv.StartSentinels(t)
	trial := newRedisTrial(&ownRedis{t: t}, setupWith(t, options{redis: s.URL, config: redisConfig}))
	trial.meets(redisFault{
		name:  "master lost",
		begin: func(r *ownRedis) { r.must(s.Master.Kill()) },
		end:   func(*ownRedis) { s.Promote() },
	})
	trial.ends()
}

// TestRedisCluster_Burst checks that pushes due in one second leave once and not early, through a cluster that is named
// by one node. No worker polls: the wake-ups went through queues on every master. A channel's pace, the cache and the
// limits of callers are on the cluster, too.
func TestRedisCluster_Burst(t *testing.T) {
	allOnly(t)
	t.Parallel()
	const pushes, paced = 1000, 30
	b := setupCluster(t, oneEndpoint, strings.NewReplacer(
		"arm_lease: 2s, redis_patience: 1s", "arm_lease: 10m, redis_patience: 10m", // however busy the machine is
	).Replace(clusterConfig))
	b.StartAPI()
	worker := b.startWatchedWorker()
	due := time.Now().Add(6 * time.Second).Truncate(time.Second)
	for first := 0; first < pushes; first += 500 {
		b.submitMany("burst", fmt.Sprint("burst-", first, "-"), 500, due)
	}
	b.submitMany("paced", "paced-", paced, due)
	b.until("all are delivered", func() bool { return len(b.provider.Arrivals()) >= pushes+paced })
	once(t, b.provider.Arrivals(), pushes+paced)
	var last time.Duration
	for _, one := range b.provider.Arrivals() {
		if one.At.Before(due) {
			t.Errorf("push %s left %s before its second", one.Push, due.Sub(one.At))
		}
		if string(one.Message) != `{"channel":"paced"}` {
			last = max(last, one.At.Sub(due))
		}
	}
	t.Logf("the last of %d pushes was %s late", pushes, last)
	if worker.metric("sendquota_polling") != 0 || worker.metric("sendquota_overdue_total") != 0 || !redisIs("ok", b.bundle) {
		t.Error("the worker did without Redis")
	}
	for line := range strings.Lines(worker.Log()) { // a busy machine may answer late, but no node refuses a script
		late := strings.Contains(line, "context deadline exceeded") || strings.Contains(line, "i/o timeout")
		if strings.Contains(line, redisFailed) && !late {
			t.Error(line)
		}
	}
	b.wantAudited()
	kinds := map[string]bool{}
	for master := range 3 {
		rdb := testenv.RedisClient(t, b.cluster.Nodes[master].URL)
		keys := rdb.Keys(t.Context(), "*").Val()
		if len(keys) == 0 {
			t.Errorf("master %d holds nothing", master)
		}
		for _, key := range keys {
			for _, kind := range []string{":limit:", ":pace:", "asynq:{push-"} {
				kinds[kind] = kinds[kind] || strings.Contains(key, kind)
			}
		}
	}
	if len(kinds) != 3 || !kinds[":limit:"] || !kinds[":pace:"] || !kinds["asynq:{push-"] {
		t.Errorf("the cluster holds %v", kinds)
	}
}

// submitMany submits a push for each of n recipients.
func (b *bundle) submitMany(channel, name string, n int, at time.Time) {
	b.t.Helper()
	via := channel
	if channel == "burst" {
		via = "push"
	}
	var pushes []object
	for i := range n {
		pushes = append(pushes, object{"recipient": fmt.Sprint(name, i), "channel": via, "send_at": at.UTC().Format(time.RFC3339), "message": object{"channel": channel}})
	}
	if status, a := b.call(http.MethodPost, "/v1/pushes/batch", object{"pushes": pushes}); status != http.StatusOK || a["accepted"] != float64(n) {
		b.t.Fatalf("%d %v", status, a)
	}
}

// TestRedisCluster_Reshard: while slots with our keys move from master to master, submits stay exact, pushes leave once and
// not early, and every take is decided, or answered with the 503 that says Redis failed. No take that was granted is
// forgotten.
func TestRedisCluster_Reshard(t *testing.T) {
	t.Parallel()
	b := setupCluster(t, (*testenv.Cluster).Addrs, clusterConfig)
	b.StartAPI()
	worker := b.startWatchedWorker()
	all := newModels(t, "reshard", 12, lateDatabase, b.bundle)
	runModels(all, 5)()

	var (
		running          sync.WaitGroup
		done             atomic.Bool
		granted, refused atomic.Int64
		accepted         []map[string]time.Time
		moved            int
		take             = object{"key": "{tag}:first", "limits": []object{{"algorithm": "fixed_window", "limit": 1_000_000, "per": "24h"}, {"algorithm": "sliding_window", "limit": 1_000_000, "per": "24h"}}}
	)
	for range 4 {
		running.Go(func() {
			for !done.Load() {
				a, err := b.ask("POST", "/v1/limits/take", take)
				switch {
				case err == nil && a.status == http.StatusOK:
					granted.Add(1)
				case err == nil && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("take: %v, %v", a, err)
				}
			}
		})
	}
	running.Go(func() {
		for !done.Load() {
			runModels(all, 1)()
		}
	})
	for i := range 6 {
		accepted = append(accepted, b.accept(fmt.Sprint("soon-", i), 2*time.Second, object{}))
		from := i % 3
		moved += b.cluster.MoveSlots(from, (from+1+i/3)%3)
	}
	done.Store(true)
	running.Wait()
	b.wantLeft(accepted...)
	t.Logf("%d keys moved; %d takes were granted, and %d answered with 503", moved, granted.Load(), refused.Load())
	if moved < 20 || granted.Load() < 100 {
		t.Errorf("%d keys moved, %d takes were granted: nothing was tested", moved, granted.Load())
	}

	b.until("all is as before", func() bool {
		return redisIs("ok", b.bundle) && worker.metric("sendquota_polling") == 0 && b.warm(all[0])
	})
	var last answer
	b.until("a take is decided", func() bool {
		var err error
		if last, err = b.ask("POST", "/v1/limits/take", take); err == nil && last.status != http.StatusOK {
			refused.Add(1)
		}
		testenv.Check(t, err)
		return last.status == http.StatusOK
	})
	for _, limit := range last.body["limits"].([]any) {
		used := 1_000_000 - int64(limit.(object)["remaining"].(float64))
		if used < granted.Load()+1 || used > granted.Load()+refused.Load()+1 {
			t.Errorf("%d is used after %d takes and %d with 503: %v", used, granted.Load()+1, refused.Load(), limit)
		}
	}
	checkModels(b.bundle, all)
	b.wantAudited()
	once(t, b.provider.Arrivals(), len(b.provider.Arrivals()))
}

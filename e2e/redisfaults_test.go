package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// redisConfig makes everything about Redis fast. Attempts may take as long as a busy machine needs.
const redisConfig = `
policy:
  rules: ` + modelRules + `
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1m, backoff: {first: 200ms, max: 1s}}
delivery: {lease: 2m, arm_lease: 2s, redis_patience: 1s, horizon: 30s}
`

// ownRedis is a Redis that a test may ruin.
type ownRedis struct {
	t *testing.T
	*devstack.Server
	rdb redisclient.Client
}

func newOwnRedis(t *testing.T) *ownRedis {
	t.Helper()
	s := testenv.OwnRedis(t)
	return &ownRedis{t, s, testenv.RedisClient(t, s.URL)}
}

func (r *ownRedis) do(args ...any) {
	r.t.Helper()
	r.must(r.rdb.Do(context.Background(), args...).Err())
}

func (r *ownRedis) must(err error) { r.t.Helper(); testenv.Check(r.t, err) }

func (r *ownRedis) restart() { r.t.Helper(); r.must(r.Restart(context.Background())) }

// redisFault is something that happens to Redis. One without an end is over
// when it has begun.
type redisFault struct {
	name               string
	before, begin, end func(r *ownRedis)
	oneNode            bool // of a cluster; the others go on
}

var redisFaults = []redisFault{
	{name: "killed", begin: func(r *ownRedis) { r.must(r.Kill()) }, end: (*ownRedis).restart},
	{name: "stopped", begin: func(r *ownRedis) { r.must(r.Pause()) }, end: func(r *ownRedis) { r.must(r.Resume()) }},
	{name: "flushed", begin: func(r *ownRedis) { r.do("FLUSHALL") }},
	{name: "restarted empty", begin: func(r *ownRedis) { r.must(r.Kill()); r.restart() }},
	{name: "restarted from an old snapshot", before: func(r *ownRedis) { r.do("SAVE") }, begin: func(r *ownRedis) { r.must(r.Kill()); r.restart() }},
	{name: "out of memory", begin: func(r *ownRedis) { r.do("CONFIG", "SET", "maxmemory", "1") }, end: func(r *ownRedis) { r.do("CONFIG", "SET", "maxmemory", "0") }},
	{name: "refusing scripts", begin: func(r *ownRedis) { r.do("ACL", "SETUSER", "default", "-@scripting") }, end: func(r *ownRedis) { r.do("ACL", "SETUSER", "default", "+@scripting") }},
}

// redisFailed is in the log line of every part of a program whose call of Redis failed, before what the part does instead.
const redisFailed = ": Redis failed; "

// TestRedisFaults: whatever happens to Redis, before, meanwhile and
// afterwards every submit, move and refusal is exact through two APIs, what was
// accepted leaves once and not early, what is degraded is said, and all returns to
// normal by itself.
func TestRedisFaults(t *testing.T) {
	t.Parallel()
	for name, lasts := range map[string]bool{"for a while": true, "for a moment": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newOwnRedis(t)
			trial := newRedisTrial(r, setupWith(t, options{redis: r.URL, config: redisConfig}))
			for _, f := range redisFaults {
				if lasts == (f.end != nil) {
					trial.meets(f)
				}
			}
			trial.ends()
		})
	}
}

// redisTrial is an installation that meets faults of its Redis, one after the other.
type redisTrial struct {
	r        *ownRedis // whose Redis may be another one than the installation's
	b, other *bundle
	worker   watched
}

// newRedisTrial starts an installation with two APIs.
func newRedisTrial(r *ownRedis, b *bundle) *redisTrial {
	b.StartAPI()
	return &redisTrial{r, b, b.beside(), b.startWatchedWorker()}
}

// meets holds answers and deliveries to account before a fault, meanwhile and afterwards.
func (x *redisTrial) meets(f redisFault) {
	b, other, worker := x.b, x.other, x.worker
	t := b.t
	t.Log(f.name)
	all, moved := newModels(t, f.name, someModels(), lateDatabase, b, other), newReschedules(f.name, b, other)
	runModels(all, 6)()

	taken := len(b.provider.Arrivals())
	early := b.accept(f.name+": early", 3*time.Second, object{})
	moved.settle()
	b.until("wake-ups wait in Redis", func() bool {
		return worker.metric(`sendquota_queue_tasks{state="scheduled"}`) >= 6 || len(b.provider.Arrivals()) > taken
	})
	if f.before != nil {
		f.before(x.r)
		runModels(all, 4)()
		moved.change()
	}
	done := runModels(all, 6)
	f.begin(x.r)
	if f.end != nil {
		b.until("the APIs report what is degraded", func() bool { return redisIs("unreachable", b, other) })
		late := b.accept(f.name+": late", 0, object{})
		moved.change()
		done()
		b.wantLeft(early, late)
		b.until("the worker's metrics say that Redis is away", func() bool {
			return worker.metric("sendquota_polling") == 1 && worker.metric(redisUp) == 0
		})
		b.until("the worker logs what failed", func() bool {
			// In a cluster, perhaps only the queue is on the node that is lost.
			return strings.Contains(worker.Log(), redisFailed) || f.oneNode && strings.Contains(worker.Log(), "Redis cannot serve the queue")
		})
		done = runModels(all, 6)
		f.end(x.r)
	}
	if f.before == nil && f.end == nil {
		moved.change()
	}
	moved.check()
	late := b.accept(f.name+": after", 0, object{})
	done()
	b.wantLeft(early, late)

	b.until("all is as before", func() bool {
		return redisIs("ok", b, other) && worker.metric("sendquota_polling") == 0 && b.warm(all[0]) && other.warm(all[0])
	})
	runModels(all, 3)()
	checkModels(b, all)
	if n, some := totals(all), int64(len(all)); n[booked] < 4*some || n[refused] < 2*some || n[freed] < 2*some {
		t.Errorf("booked, refused, freed, unavailable: %v", n)
	}
}

// ends checks the final state of all pushes.
func (x *redisTrial) ends() {
	x.b.wantAudited()
	once(x.b.t, x.b.provider.Arrivals(), len(x.b.provider.Arrivals()))
}

// redisIs asks /readyz and /metrics of APIs, which must agree.
func redisIs(state string, apis ...*bundle) bool {
	status, up := "ready", 1.0
	if state != "ok" {
		status, up = "degraded", 0
	}
	var running sync.WaitGroup
	var others atomic.Int64
	for _, b := range apis {
		running.Go(func() {
			a, err := b.ask("GET", "/readyz", nil)
			if err != nil || a.status != http.StatusOK || a.body["redis"] != state || a.body["status"] != status {
				others.Add(1)
			}
		})
		running.Go(func() {
			if metric(b.api, redisUp) != up {
				others.Add(1)
			}
		})
	}
	running.Wait()
	return others.Load() == 0
}

const redisUp = `sendquota_up{server="redis"}`

// warm reports whether the cache refuses a place that the model holds. With an Idempotency-Key it is asked also after a refusal.
func (b *bundle) warm(m *model) bool {
	const answers = `sendquota_cache_answers_total{state="blocked"}`
	before := metric(b.api, answers)
	for _, at := range m.held {
		body := object{"recipient": m.name, "send_at": at.Format(time.RFC3339), "message": object{}}
		a, err := b.ask("POST", "/v1/pushes", body, "Idempotency-Key", fmt.Sprint("warm", rand.Uint64()))
		if err != nil || a.status != http.StatusConflict {
			b.t.Fatalf("a held place was given: %+v, %v", a, err)
		}
		break
	}
	return metric(b.api, answers) > before
}

// accept submits six pushes of as many recipients, due in a while, and returns
// their ids and times.
func (b *bundle) accept(name string, in time.Duration, message object) map[string]time.Time {
	b.t.Helper()
	due := map[string]time.Time{}
	for i := range 6 {
		body := object{"recipient": fmt.Sprint(name, "-", i), "message": message}
		if in > 0 {
			body["send_at"] = time.Now().Add(in).Format(time.RFC3339)
		}
		a := b.repeat("POST", "/v1/pushes", body, "Idempotency-Key", uuid.NewString())
		if a.status != http.StatusCreated {
			b.t.Fatalf("%s: %v", name, a)
		}
		due[a.body["id"].(string)], _ = time.Parse(time.RFC3339, a.body["send_at"].(string))
	}
	return due
}

// wantLeft waits until the provider has these pushes, and wants none of them
// to be early.
func (b *bundle) wantLeft(accepted ...map[string]time.Time) {
	b.t.Helper()
	due := map[string]time.Time{}
	for _, some := range accepted {
		for id, at := range some {
			due[id] = at
		}
	}
	at := map[string]time.Time{}
	b.until("what was accepted leaves", func() bool {
		for _, one := range b.provider.Arrivals() {
			at[one.Push] = one.At
		}
		for id := range due {
			if at[id].IsZero() {
				return false
			}
		}
		return true
	})
	for id, promised := range due {
		if late := at[id].Sub(promised); late < 0 {
			b.t.Errorf("push %s left %s before its second", id, -late)
		}
	}
}

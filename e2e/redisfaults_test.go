package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// redisConfig makes everything about Redis fast.
const redisConfig = `
policy:
  rules: ` + peopleRules + `
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 2s, backoff: {first: 200ms, max: 1s}}
delivery: {lease: 4s, arm_lease: 2s, redis_patience: 1s, horizon: 30s}
`

// ownRedis is a Redis that a test may ruin.
type ownRedis struct {
	t *testing.T
	*devstack.Server
	rdb *redis.Client
}

func newOwnRedis(t *testing.T) *ownRedis {
	s := testenv.OwnRedis(t)
	o, err := redis.ParseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &ownRedis{t, s, redis.NewClient(o)}
	t.Cleanup(func() { _ = r.rdb.Close() })
	return r
}

func (r *ownRedis) do(args ...any) {
	r.t.Helper()
	r.must(r.rdb.Do(context.Background(), args...).Err())
}

func (r *ownRedis) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *ownRedis) restart() { r.t.Helper(); r.must(r.Restart(context.Background())) }

// redisFault is something that happens to Redis. One without an end is over
// when it has begun.
type redisFault struct {
	name               string
	before, begin, end func(r *ownRedis)
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

// TestLifeWithoutRedis: whatever happens to Redis, before, meanwhile and
// afterwards every submit, move and refusal is exact through two APIs, what was
// accepted leaves once and not early, what is degraded is said, and all returns to
// normal by itself.
func TestLifeWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, f := range redisFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.test(t)
		})
	}
}

func (f redisFault) test(t *testing.T) {
	r := newOwnRedis(t)
	w := newWorldIn(t, setting{redis: r.URL, config: redisConfig})
	w.startAPI()
	other, worker := w.beside(), w.startWatchedWorker()
	all, moved := people(t, 24, false, w, other), newMovers(w, other)
	live(all, 6)()

	early := w.accept("early", 3*time.Second, object{})
	moved.settle()
	w.until("wake-ups wait in Redis", func() bool {
		return worker.metric(`sendquota_queue_tasks{state="scheduled"}`) >= 6 || len(w.taken()) > 0
	})
	if f.before != nil {
		f.before(r)
		live(all, 4)()
		moved.change()
	}
	done := live(all, 6)
	f.begin(r)
	if f.end != nil {
		w.until("the APIs say what is degraded", func() bool { return redisIs("unreachable", w, other) })
		late := w.accept("late", 0, object{})
		moved.change()
		done()
		w.wantLeft(early, late)
		w.until("the worker's metrics say that Redis is away", func() bool {
			return worker.metric("sendquota_polling") == 1 && worker.metric(redisUp) == 0
		})
		done = live(all, 6)
		f.end(r)
	}
	if f.before == nil && f.end == nil {
		moved.change()
	}
	moved.check()
	late := w.accept("after", 0, object{})
	done()
	w.wantLeft(early, late)

	w.until("all is as before", func() bool {
		return redisIs("ok", w, other) && worker.metric("sendquota_polling") == 0 && w.warm(all[0]) && other.warm(all[0])
	})
	live(all, 3)()
	wantAccounts(w, all)
	if out := w.tool("audit"); out != "no violations\n" {
		t.Errorf("audit: %s", out)
	}
	if n := tally(all); n[booked] < 100 || n[refused] < 50 || n[freed] < 50 || n[unavailable] > 0 {
		t.Errorf("booked, refused, freed, unavailable: %v", n)
	}
	once(t, w.taken(), len(w.taken()))
}

// redisIs asks /readyz and /metrics of APIs, which must agree.
func redisIs(state string, apis ...*world) bool {
	status, up := "ready", 1.0
	if state != "ok" {
		status, up = "degraded", 0
	}
	var running sync.WaitGroup
	var others atomic.Int64
	for _, w := range apis {
		running.Go(func() {
			a, err := w.ask("GET", "/readyz", nil)
			if err != nil || a.status != http.StatusOK || a.body["redis"] != state || a.body["status"] != status {
				others.Add(1)
			}
		})
		running.Go(func() {
			if metric(w.api, redisUp) != up {
				others.Add(1)
			}
		})
	}
	running.Wait()
	return others.Load() == 0
}

const redisUp = `sendquota_up{server="redis"}`

// warm reports whether the cache refuses a place that somebody holds.
func (w *world) warm(p *person) bool {
	const answers = `sendquota_ledger_answers_total{state="blocked"}`
	before := metric(w.api, answers)
	for _, at := range p.held {
		if status, a := w.call("POST", "/v1/pushes", object{"recipient": p.name, "send_at": at.Format(time.RFC3339), "message": object{}}); status != http.StatusConflict {
			w.t.Fatalf("a held place was given: %v", a)
		}
		break
	}
	return metric(w.api, answers) > before
}

// accept submits six pushes of as many recipients, due in a while, and returns
// their ids and times.
func (w *world) accept(name string, in time.Duration, message object) map[string]time.Time {
	w.t.Helper()
	due := map[string]time.Time{}
	for i := range 6 {
		body := object{"recipient": fmt.Sprint(name, "-", i), "message": message}
		if in > 0 {
			body["send_at"] = time.Now().Add(in).Format(time.RFC3339)
		}
		status, a := w.call("POST", "/v1/pushes", body)
		if status != http.StatusCreated {
			w.t.Fatalf("%s: %d %v", name, status, a)
		}
		due[a["id"].(string)], _ = time.Parse(time.RFC3339, a["send_at"].(string))
	}
	return due
}

// wantLeft waits until the provider has these pushes, and wants none of them
// to be early.
func (w *world) wantLeft(accepted ...map[string]time.Time) {
	w.t.Helper()
	due := map[string]time.Time{}
	for _, some := range accepted {
		for id, at := range some {
			due[id] = at
		}
	}
	at := map[string]time.Time{}
	w.until("what was accepted leaves", func() bool {
		for _, one := range w.taken() {
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
			w.t.Errorf("push %s left %s before its second", id, -late)
		}
	}
}

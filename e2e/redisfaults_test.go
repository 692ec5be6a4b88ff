package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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

// soon is how late a push may leave because of a fault of Redis: the arm lease
// or the patience, and what a loaded machine takes.
const soon = 8 * time.Second

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
// accepted leaves soon and once, what is degraded is said, and all returns to
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
		if worker.metric("sendquota_polling") != 1 || worker.metric(redisUp) != 0 {
			t.Error("the worker's metrics do not say that Redis is away")
		}
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

// warm reports whether the ledger refuses a place that somebody holds.
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
// to be early or late.
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
		if late := at[id].Sub(promised); late < 0 || late > soon {
			w.t.Errorf("push %s left %s after its second", id, late)
		}
	}
}

// mover is a recipient whose only push is moved while Redis is in trouble.
type mover struct {
	name, push string
	at, to     time.Time
}

// movers change in trouble through one API. Afterwards the other API must know.
type movers struct {
	w, other *world
	all      []*mover
}

func newMovers(w, other *world) *movers {
	m := &movers{w: w, other: other}
	at := time.Now().UTC().Add(2 * time.Hour).Truncate(time.Minute)
	for i := range 12 {
		m.all = append(m.all, &mover{name: fmt.Sprint("mover-", i), at: at, to: at.Add(time.Minute)})
	}
	return m
}

func (m *movers) submit(w *world, one *mover, at time.Time, want int) object {
	w.t.Helper()
	status, a := w.call("POST", "/v1/pushes", object{"recipient": one.name, "send_at": at.Format(time.RFC3339), "message": object{}})
	if status != want {
		w.t.Errorf("%s at %s: %d %v, want %d", one.name, at.Format(time.TimeOnly), status, a, want)
	}
	return a
}

// settle books, and lets both APIs refuse the same place: the ledger knows it.
func (m *movers) settle() {
	m.w.t.Helper()
	for _, one := range m.all {
		one.push, _ = m.submit(m.w, one, one.at, http.StatusCreated)["id"].(string)
		m.submit(m.other, one, one.at, http.StatusConflict)
		m.submit(m.w, one, one.at, http.StatusConflict)
	}
}

// change cancels every second push, and moves the others.
func (m *movers) change() {
	m.w.t.Helper()
	for i, one := range m.all {
		method, path, body := "POST", "/v1/pushes/"+one.push+"/cancel", any(nil)
		if i%2 == 1 {
			method, path, body = "PATCH", "/v1/pushes/"+one.push, object{"send_at": one.to.Format(time.RFC3339)}
		}
		if status, a := m.w.call(method, path, body); status != http.StatusOK {
			m.w.t.Errorf("%s %s: %d %v", method, path, status, a)
		}
	}
}

// check wants the other API to give what is free now, and to refuse what is
// taken, with the right free times.
func (m *movers) check() {
	m.w.t.Helper()
	for i, one := range m.all {
		if i%2 == 1 {
			a := m.submit(m.other, one, one.to.Add(time.Second), http.StatusConflict)
			if a["next_available_at"] != one.to.Add(3*time.Second).Format(time.RFC3339) || a["previous_available_at"] != one.to.Add(-3*time.Second).Format(time.RFC3339) {
				m.w.t.Errorf("%s beside %s: %v", one.name, one.to.Format(time.TimeOnly), a)
			}
		}
		m.submit(m.other, one, one.at.Add(time.Second), http.StatusCreated)
		a := m.submit(m.w, one, one.at, http.StatusConflict)
		if next := one.at.Add(4 * time.Second).Format(time.RFC3339); a["next_available_at"] != next {
			m.w.t.Errorf("%s: refused until %v, want %s: %v", one.name, a["next_available_at"], next, a)
		}
	}
}

// watched is a worker that serves its metrics.
type watched struct {
	*program
	url string
}

func (w *world) startWatchedWorker() watched {
	w.t.Helper()
	addr := freeAddr(w.t)
	p := w.start(exec.Command(filepath.Join(w.bin, "worker")), "SENDQUOTA_METRICS_ADDR="+addr)
	w.until("the worker serves its metrics", func() bool {
		res, err := client.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return watched{p, "http://" + addr}
}

func (p watched) metric(name string) float64 { return metric(p.url, name) }

// metric reads one metric with its labels; 0 if it is not there, and -1 if
// nothing can be read.
func metric(url, name string) float64 {
	res, err := client.Get(url + "/metrics")
	if err != nil {
		return -1
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return -1
			}
			return n
		}
	}
	return 0
}

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/redisclient"
)

// standstill is something that stops the queue, although Redis works.
type standstill struct {
	name  string
	redis string // its state in /readyz
	begin func(t *testing.T, rdb redisclient.Client, queues []string)
	end   func(t *testing.T, rdb redisclient.Client, queues []string)
}

var standstills = []standstill{
	{
		name: "paused", redis: "queue_broken",
		begin: func(t *testing.T, rdb redisclient.Client, queues []string) {
			for _, q := range queues {
				rdb.Set(t.Context(), "asynq:{"+q+"}:paused", 1, 0)
			}
		},
		end: func(t *testing.T, rdb redisclient.Client, queues []string) {
			for _, q := range queues {
				rdb.Del(t.Context(), "asynq:{"+q+"}:paused")
			}
		},
	},
	{
		name: "a key of the wrong type", redis: "queue_broken",
		begin: func(t *testing.T, rdb redisclient.Client, queues []string) {
			for _, q := range queues {
				rdb.Del(t.Context(), "asynq:{"+q+"}:pending")
				rdb.Set(t.Context(), "asynq:{"+q+"}:pending", "what is this?", 0)
			}
		},
		end: func(t *testing.T, rdb redisclient.Client, queues []string) {
			for _, q := range queues {
				rdb.Del(t.Context(), "asynq:{"+q+"}:pending")
			}
		},
	},
	{
		name: "wake-ups vanish", redis: "ok", // as if workers of another system took them
		begin: func(t *testing.T, rdb redisclient.Client, queues []string) {
			for _, q := range queues {
				rdb.Del(t.Context(), "asynq:{"+q+"}:scheduled", "asynq:{"+q+"}:pending")
			}
		},
		end: func(*testing.T, redisclient.Client, []string) {},
	},
}

// TestStandstill: the queue wakes no worker, although Redis works. What is overdue leaves
// all the same, /readyz and the metrics tell, and when it is over all is as before.
func TestStandstill(t *testing.T) {
	t.Parallel()
	r := newOwnRedis(t)
	b := setupWith(t, options{redis: r.URL, config: strings.Replace(usualConfig, "delivery: {", "delivery: {arm_lease: 2s, ", 1)})
	b.StartAPI()
	worker := b.startWatchedWorker()
	b.wantLeft(b.accept("before", 0, object{}))
	queues := slices.DeleteFunc(r.rdb.SMembers(t.Context(), "asynq:queues").Val(), func(q string) bool { return !strings.HasPrefix(q, "push-") })
	if len(queues) == 0 {
		t.Fatal("there is no queue")
	}
	for _, s := range standstills {
		t.Log(s.name)
		s.through(r, b, worker, queues)
	}
	once(t, b.provider.Arrivals(), len(b.provider.Arrivals()))
	b.wantAudited()
}

// through stops the queue of an installation, and resumes it.
func (s standstill) through(r *ownRedis, b *bundle, worker watched, queues []string) {
	before := len(b.provider.Arrivals())
	due := b.accept(s.name+": during", 3*time.Second, object{})
	b.until("they are armed", func() bool {
		return worker.metric(`sendquota_queue_tasks{state="scheduled"}`) >= 6 || len(b.provider.Arrivals()) > before
	})
	s.begin(b.t, r.rdb, queues)
	if s.redis != "ok" {
		maps.Copy(due, b.accept(s.name+": at once", 0, object{}))
		b.until("/readyz tells", func() bool {
			return readiness(b.t, b.api)["redis"] == s.redis && readiness(b.t, worker.url)["redis"] == s.redis
		})
	}
	b.wantLeft(due)
	s.end(b.t, r.rdb, queues)
	b.until("it is as before", func() bool {
		return readiness(b.t, b.api)["status"] == "ready" && readiness(b.t, worker.url)["status"] == "ready"
	})
	b.wantLeft(b.accept(s.name+": after", 0, object{}))
}

// readiness returns a program's report of its state; nil if it does not answer.
func readiness(t *testing.T, url string) object {
	t.Helper()
	b := &bundle{t: t, api: url}
	a, err := b.ask("GET", "/readyz", nil)
	if err != nil {
		return nil
	}
	return a.body
}

// TestStandstill_ForeignWorkers: workers of another system take every wake-up and know nothing
// of its push.
func TestStandstill_ForeignWorkers(t *testing.T) {
	t.Parallel()
	r := newOwnRedis(t)
	b := setupWith(t, options{redis: r.URL, config: strings.Replace(usualConfig, "delivery: {", "delivery: {arm_lease: 2s, ", 1)})
	b.StartAPI()
	first := b.accept("first", 0, object{})
	queues := map[string]int{}
	for _, q := range r.rdb.SMembers(t.Context(), "asynq:queues").Val() {
		queues[q] = 1
	}
	thief := asynq.NewServerFromRedisClient(r.rdb.(redis.UniversalClient), asynq.Config{Queues: queues, Concurrency: 8, TaskCheckInterval: 10 * time.Millisecond,
		DelayedTaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.FatalLevel})
	stolen := make(chan struct{}, 10_000)
	if err := thief.Start(asynq.HandlerFunc(func(_ context.Context, _ *asynq.Task) error { stolen <- struct{}{}; return nil })); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(thief.Shutdown)
	<-stolen
	worker := b.startWatchedWorker()
	maps.Copy(first, b.accept("more", time.Second, object{}))
	b.wantLeft(first)
	n := 0 // the worker takes a wake-up now and then
	b.until("the worker has counted what it found without a wake-up", func() bool {
		n++
		b.wantLeft(b.accept(fmt.Sprint("more-", n), time.Second, object{}))
		return worker.metric("sendquota_overdue_total") > 0
	})
	once(t, b.provider.Arrivals(), len(b.provider.Arrivals()))
}

// TestChannel_Removed: its pushes wait without using up attempts. Some leave
// when it is back; those whose time is over are expired, and not failed.
func TestChannel_Removed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	api := b.StartAPI()
	submit := func(recipient, channel string) string {
		status, a := b.call("POST", "/v1/pushes", object{"recipient": recipient, "channel": channel, "message": object{}})
		if status != 201 {
			t.Fatalf("%d %v", status, a)
		}
		return a["id"].(string)
	}
	patient, brief, other := submit("anna", "push"), submit("bert", "push"), submit("carl", "log")
	b.stop(api)
	b.configure("  push: {", "  other: {")
	b.StartAPI()
	away := b.Start("worker")
	state := func(id string) object { _, a := b.call("GET", "/v1/pushes/"+id, nil); return a }
	b.until("the worker has read the due pushes", func() bool { return state(other)["status"] == "sent" })
	b.expire(brief)
	b.until("the brief one is over", func() bool { return state(brief)["status"] != "scheduled" })
	if a := state(brief); a["status"] != "expired" || a["attempts"] != 0.0 {
		t.Errorf("the brief one: %v", a)
	}
	if a := state(patient); a["status"] != "scheduled" || a["attempts"] != 0.0 {
		t.Errorf("the patient one: %v", a)
	}
	if a := readiness(t, b.api); a["status"] != "ready" {
		t.Errorf("/readyz: %v", a)
	}
	b.stop(away)
	b.configure("  other: {", "  push: {")
	b.Start("worker")
	b.until("the patient one leaves", func() bool { return state(patient)["status"] == "sent" })
	if taken := b.provider.Arrivals(); len(taken) != 1 || taken[0].Push != patient {
		t.Errorf("%v", taken)
	}
}

// TestFinish_ReadOnlyPostgres: attempts that the provider took while Postgres writes nothing
// are recorded when it does again, and made once.
func TestFinish_ReadOnlyPostgres(t *testing.T) {
	t.Parallel()
	p := newOwnPostgres(t)
	b := setupWith(t, options{database: p.URL, config: strings.Replace(usualConfig, "lease: 30s", "lease: 2m, arm_lease: 2s", 1)})
	b.Env = append(b.Env, "DATABASE_URL="+p.service)
	b.StartAPI()
	worker := b.startWatchedWorker()
	due := b.accept("slow", 0, object{"do": "slow"})
	b.until("attempts are under way", func() bool { return len(b.provider.Arrivals()) == len(due) })
	p.do(`ALTER ROLE service SET default_transaction_read_only = on`)
	p.do(terminate)
	b.until("the worker's Postgres writes nothing", func() bool { return worker.metric(`sendquota_up{server="postgres"}`) == 0 })
	b.until("the worker has all answers", func() bool { return strings.Count(worker.Log(), "push attempted") == len(due) })
	p.do(`ALTER ROLE service RESET default_transaction_read_only`)
	b.until("all are recorded", func() bool {
		for id := range due {
			if _, a := b.call("GET", "/v1/pushes/"+id, nil); a["status"] != "sent" || a["attempts"] != 1.0 {
				return false
			}
		}
		return true
	})
	once(t, b.provider.Arrivals(), len(due))
	b.wantAudited()
}

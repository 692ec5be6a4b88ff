package schedule_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Checks(20)
	testenv.Main(m)
}

// began is the services' current time.
var began = time.Now().UTC().Truncate(time.Second)

var threeRules = quota.Policy{
	{Name: "per-minute", Limit: 1, Window: time.Minute},
	{Name: "per-hour", Limit: 5, Window: time.Hour},
	{Name: "per-day", Limit: 10, Window: 24 * time.Hour},
}

// bundle is a service with its dependencies.
type bundle struct {
	*schedule.Service
	store   *store.Store
	cache   *quota.Cache
	queue   *queue
	metrics *metrics
	tenant  uuid.UUID
}

// servers are shared by the bundles of one company.
type servers struct {
	postgres, redis string
	store           *store.Store
}

// stores serializes tests that read all tenants.
var stores testenv.Stores

// newServers returns shared servers for a test that only touches its own tenants.
func newServers(t testing.TB) servers {
	t.Helper()
	return servers{testenv.SharedPostgres(t), testenv.Redis(t), testenv.SharedStore(t)}
}

// ownServers returns servers of its own for a test that touches all tenants.
func ownServers(t testing.TB) servers {
	t.Helper()
	url, st := stores.Take(t)
	return servers{url, testenv.Redis(t), st}
}

// second is another store of the shared database, for all tests.
var second struct {
	sync.Once
	*store.Store
}

// beside returns the servers of another process, with a store of its own.
func (s servers) beside(t testing.TB) servers {
	t.Helper()
	open := func() *store.Store {
		st, err := store.Open(context.Background(), s.postgres, store.Config{Timeout: testenv.StoreTimeout, ReadTimeout: testenv.StoreTimeout, Sealer: testenv.Sealer()})
		testenv.Check(t, err)
		return st
	}
	if s.postgres == testenv.SharedPostgres(t) {
		second.Do(func() { second.Store = open() })
		s.store = second.Store
	} else {
		s.store = open()
		t.Cleanup(s.store.Close)
	}
	return s
}

// withoutRedis returns the servers of a process that reaches no Redis.
func (s servers) withoutRedis() servers {
	s.redis = noRedis
	return s
}

// noRedis is an address without a server.
const noRedis = "redis://127.0.0.1:1"

func (s servers) open(t testing.TB, policy quota.Policy) *bundle {
	t.Helper()
	rdb := testenv.RedisClient(t, s.redis, func(o *redisclient.Options) { o.MaxRetries, o.ContextTimeoutEnabled = 1, true })
	tenant, _, err := s.store.CreateTenant(t.Context(), uuid.NewString())
	testenv.Check(t, err)
	b := &bundle{store: s.store, queue: &queue{}, metrics: &metrics{counts: map[string]int{}}, tenant: tenant}
	cfg := redisscript.Config{Timeout: time.Minute, OnError: func(err error) { t.Error(err) }} // a busy machine is no failure
	if s.redis == noRedis {
		cfg = redisscript.Config{Cooldown: time.Hour}
	}
	b.cache = quota.NewCache(rdb, cfg)
	t.Cleanup(func() { _ = b.cache.Flush(context.Background()) })
	b.Service = b.service(policy)
	return b
}

// service returns another service with the same dependencies, under another policy.
func (b *bundle) service(policy quota.Policy) *schedule.Service {
	return b.serviceAt(policy, func() time.Time { return began })
}

// serviceAt returns a service with another clock.
func (b *bundle) serviceAt(policy quota.Policy, now func() time.Time) *schedule.Service {
	return schedule.New(b.store, b.cache, b.queue, b.metrics, now, schedule.Config{
		Policy: policy, Channels: []string{"log", "sms"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: 90 * time.Second,
	})
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return newServers(t).open(t, threeRules)
}

// queue records the recipients whose lanes are to be woken.
type queue struct {
	mu    sync.Mutex
	wakes []wake
}

type wake struct {
	recipientKey int64
	at           time.Time
	in           time.Duration
}

func (q *queue) Wake(recipientKey int64, at time.Time, in time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes = append(q.wakes, wake{recipientKey, at, in})
}

// takeWakes returns the recorded wakes, and forgets them.
func (q *queue) takeWakes() []wake {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.wakes
	q.wakes = nil
	return w
}

// metrics counts the service's metrics.
type metrics struct {
	mu     sync.Mutex
	counts map[string]int
}

func (s *metrics) Submitted(outcome, rule string) { s.count("submitted " + outcome + " " + rule) }
func (s *metrics) CacheAnswered(state string)     { s.count("cache " + state) }

func (s *metrics) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *metrics) of(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// request returns a request for a push to anna at a time after began.
func request(in time.Duration) schedule.Request {
	return schedule.Request{Content: push.Content{Recipient: "anna", Message: json.RawMessage(`{"title":"hello"}`)}, SendAt: began.Add(in)}
}

// submit submits a push that must be accepted.
func (b *bundle) submit(t testing.TB, in time.Duration) push.Push {
	t.Helper()
	res, err := b.Submit(t.Context(), b.tenant, request(in), schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Push
}

func (b *bundle) read(t testing.TB, id uuid.UUID) push.Push {
	t.Helper()
	p, err := b.Push(t.Context(), b.tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Reschedule moves a push to an instant.
func (b *bundle) Reschedule(ctx context.Context, tenant, id uuid.UUID, to time.Time, own push.OwnCaps) (booking.Decision, error) {
	return b.Service.Reschedule(ctx, tenant, id, schedule.When{SendAt: to}, schedule.Options{Caps: own})
}

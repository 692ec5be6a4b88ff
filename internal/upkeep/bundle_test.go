package upkeep_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// began is the services' current time.
var began = time.Now().UTC().Truncate(time.Second)

var threeRules = quota.Policy{
	{Name: "per-minute", Limit: 1, Window: time.Minute},
	{Name: "per-hour", Limit: 5, Window: time.Hour},
	{Name: "per-day", Limit: 10, Window: 24 * time.Hour},
}

var quiet = slog.New(slog.DiscardHandler)

// bundle is a store, a cache and a service that books pushes for the loops.
type bundle struct {
	*schedule.Service
	store    *store.Store
	postgres string
	cache    *quota.Cache
	queue    *queue
	tenant   uuid.UUID
}

// stores serializes tests that read all tenants.
var stores testenv.Stores

// setup opens a bundle on a store of its own.
func setup(t testing.TB, policy quota.Policy) *bundle {
	t.Helper()
	url, st := stores.Take(t)
	return setupOn(t, url, st, policy)
}

// setupOwnStore opens a bundle on a second store, which the test may close.
func setupOwnStore(t testing.TB, policy quota.Policy) *bundle {
	t.Helper()
	url, _ := stores.Take(t)
	return setupOn(t, url, openStore(t, url), policy)
}

func openStore(t testing.TB, url string) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), url, store.Config{Timeout: testenv.StoreTimeout, ReadTimeout: testenv.StoreTimeout, Sealer: testenv.Sealer()})
	testenv.Check(t, err)
	t.Cleanup(st.Close)
	return st
}

func setupOn(t testing.TB, url string, st *store.Store, policy quota.Policy) *bundle {
	t.Helper()
	rdb := testenv.RedisClient(t, testenv.Redis(t), func(o *redisclient.Options) { o.MaxRetries, o.ContextTimeoutEnabled = 1, true })
	tenant, _, err := st.CreateTenant(t.Context(), uuid.NewString())
	testenv.Check(t, err)
	b := &bundle{store: st, postgres: url, queue: &queue{}, tenant: tenant}
	b.cache = quota.NewCache(rdb, redisscript.Config{Timeout: time.Minute, OnError: func(err error) { t.Error(err) }}) // a busy machine is no failure
	t.Cleanup(func() { _ = b.cache.Flush(context.Background()) })
	b.Service = schedule.New(st, b.cache, b.queue, noMetrics{}, func() time.Time { return began }, schedule.Config{
		Policy: policy, Channels: []string{"log", "sms"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: 90 * time.Second,
	})
	return b
}

// noMetrics drops the service's metrics.
type noMetrics struct{}

func (noMetrics) Submitted(string, string) {}
func (noMetrics) CacheAnswered(string)     {}

// queue records the wake-ups that it gets, and drops wakes.
type queue struct {
	mu      sync.Mutex
	wakeUps []push.WakeUp
	err     error
}

func (q *queue) Arm(_ context.Context, wakeUps []push.WakeUp) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakeUps = append(q.wakeUps, wakeUps...)
	return q.err
}

func (q *queue) Wake(int64, time.Time, time.Duration) {}

func (q *queue) take() []push.WakeUp {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.wakeUps
	q.wakeUps = nil
	return w
}

// handler is a deliverer whose channels never wait.
type handler func(ctx context.Context, w push.WakeUp) error

func (h handler) Handle(ctx context.Context, w push.WakeUp) error { return h(ctx, w) }
func (handler) Backlogged(string) bool                            { return false }

// lanes implements the owner of lanes.
type lanes []push.Lane

func (l lanes) Lanes() []push.Lane { return l }

// all is the only lane.
var all = lanes(push.Lanes(1))

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

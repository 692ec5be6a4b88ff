package delivery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Overlap(4)
	testenv.Main(m)
}

var quiet = slog.New(slog.DiscardHandler)

// provider is a channel that records its pushes, and answers by a function; without one, it takes everything at once.
type provider struct {
	answer func(ctx context.Context, p push.Push, attempt int) channel.Result
	texts  sms.Size // of all messages

	mu   sync.Mutex
	took []taken
}

type taken struct {
	push    push.Push
	attempt int
	at      time.Time
}

func (p *provider) Check(string, json.RawMessage) invalid.FieldErrors { return nil }

func (p *provider) Size(json.RawMessage) sms.Size { return p.texts }

func (p *provider) Send(ctx context.Context, m push.Push, attempt int) channel.Result {
	p.mu.Lock()
	p.took = append(p.took, taken{m, attempt, time.Now()})
	p.mu.Unlock()
	if p.answer == nil {
		return channel.Result{Outcome: push.Delivered}
	}
	return p.answer(ctx, m, attempt)
}

func (p *provider) all() []taken {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took
}

// metrics records the metrics.
type metrics struct {
	mu           sync.Mutex
	attempted    []attempted
	unregistered []string
	putOff       int
}

type attempted struct {
	channel, outcome string
	first            bool
	late             time.Duration
}

func (m *metrics) Attempted(channel, level, outcome string, first bool, late time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempted = append(m.attempted, attempted{channel, outcome, first, late})
}

func (m *metrics) Unregistered(channel string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unregistered = append(m.unregistered, channel)
}

func (m *metrics) PutOff() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putOff++
}

// noOwn is a store without channels of tenants.
type noOwn struct{}

func (noOwn) OwnDue(context.Context, booking.OwnDueOrder) ([]booking.Due, error) { return nil, nil }

func (noOwn) OwnRoutes(context.Context, booking.OwnRoutesOrder) (due []string, last string, err error) {
	return nil, "", nil
}

// bundle is a worker on a real store, with two slots and one channel named log.
type bundle struct {
	*delivery.Worker
	*provider
	store   *store.Store
	url     string // of the store's database
	cache   *quota.Cache
	metrics *metrics
	waker   *wakes
	tenant  uuid.UUID
}

// wakes records the recipients whose lanes are to be woken, and when.
type wakes struct {
	mu   sync.Mutex
	asks map[int64]time.Duration
}

func (w *wakes) Wake(recipientKey int64, _ time.Time, in time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asks == nil {
		w.asks = map[int64]time.Duration{}
	}
	w.asks[recipientKey] = in
}

// count returns the number of these recipients.
func (w *wakes) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asks)
}

// of reports whether the lane of a recipient is to be woken, and in how long.
func (w *wakes) of(tenant uuid.UUID, recipient string) (in time.Duration, asked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, asked = w.asks[push.RecipientKey(tenant, recipient)]
	return in, asked
}

// all is the only lane.
var all = push.Lanes(1)[0]

var retry = push.Retry{MaxAttempts: 3, First: time.Minute, Max: time.Minute}

// stores serializes the tests, because workers process all tenants.
var stores = testenv.Stores{Config: store.Config{Channels: []string{"log", "sms", booking.OwnRoute}, Sealer: testenv.Sealer()}}

func setup(t testing.TB, policy quota.Policy) *bundle {
	t.Helper()
	url, st := stores.Take(t)
	b := setupOn(t, st, policy)
	b.url = url
	return b
}

func setupOn(t testing.TB, st *store.Store, policy quota.Policy) *bundle {
	t.Helper()
	rdb := testenv.RedisClient(t, testenv.Redis(t))
	b := &bundle{provider: &provider{}, store: st, cache: quota.NewCache(rdb, redisscript.Config{Timeout: time.Minute}), metrics: &metrics{}, waker: &wakes{}, tenant: tenant(t, st)}
	b.Worker = delivery.New(st, b.cache, channels(t, b.provider), b.waker, quiet, b.metrics, delivery.Config{Policy: policy, Lease: 20 * time.Second, Concurrency: 2})
	t.Cleanup(func() { closeWorker(t, b.Worker) })
	return b
}

// closeWorker closes a worker, and waits until it has ended.
func closeWorker(t testing.TB, w *delivery.Worker) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	testenv.Check(t, w.Run(ctx))
}

func tenant(t testing.TB, st *store.Store) uuid.UUID {
	t.Helper()
	id, _, err := st.CreateTenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func channels(t testing.TB, c channel.Channel) *channel.Set {
	t.Helper()
	set, err := channel.NewSet(channel.Entry{Name: "log", Channel: c, Retry: retry})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// book books a push for a whole second, whatever the policy.
func (b *bundle) book(t testing.TB, recipient, channel string, at time.Time) push.Push {
	t.Helper()
	return b.bookAll(t, channel, at, recipient)[0]
}

// bookAll books a push for each of some recipients.
func (b *bundle) bookAll(t testing.TB, channel string, at time.Time, recipients ...string) (booked []push.Push) {
	t.Helper()
	var o booking.Order
	for _, r := range recipients {
		o.Drafts = append(o.Drafts, booking.Draft{Push: push.Push{
			Content: push.Content{Recipient: r, Channel: channel, Message: json.RawMessage(`{}`)},
			ID:      push.NewID(at, push.RecipientKey(b.tenant, r)), Tenant: b.tenant, RequestedSendAt: at, SendAt: at, TTL: time.Hour,
		}})
	}
	decisions, err := b.store.Book(t.Context(), o)
	testenv.Check(t, err)
	for _, d := range decisions {
		booked = append(booked, d.Push)
	}
	return booked
}

// names returns the names of n recipients.
func names(prefix string, n int) (recipients []string) {
	for i := range n {
		recipients = append(recipients, fmt.Sprint(prefix, i))
	}
	return recipients
}

func thisSecond() time.Time { return time.Now().UTC().Truncate(time.Second) }

// handle makes the worker send due pushes, and waits for the attempts.
func (b *bundle) handle(t testing.TB) {
	t.Helper()
	if err := b.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil {
		t.Error(err)
	}
	b.Settle()
}

func (b *bundle) read(t testing.TB, id uuid.UUID) push.Push {
	t.Helper()
	p, err := b.store.Push(t.Context(), b.tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// audit fails the test if a guarantee is broken.
func (b *bundle) audit(t testing.TB, policy quota.Policy) {
	t.Helper()
	findings, err := b.store.Audit(t.Context(), policy, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check != "promised-window" { // these pushes were booked without a policy
			t.Errorf("audit: %+v", f)
		}
	}
}

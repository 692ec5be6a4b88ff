package httpapi

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/httpapi/campaigns"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/records"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The default policy.
func testPolicy() quota.Policy {
	return quota.Policy{
		{Name: "per-minute", Limit: 1, Window: time.Minute},
		{Name: "per-hour", Limit: 5, Window: time.Hour},
		{Name: "per-day", Limit: 10, Window: 24 * time.Hour},
	}
}

// bundle is an API on real servers, with two tenants.
type bundle struct {
	textSize func(channel string, message json.RawMessage) (sms.Size, bool) // nil: no channel sends text messages
	t        *testing.T
	url      string // of the database
	alone    bool   // it has no others' rows
	rdb      redisclient.Client
	store    *store.Store
	api      http.Handler
	cfg      Config            // of api
	svc      *schedule.Service // of api
	tenant   uuid.UUID
	name     string
	key      string
	other    string // another tenant's key
	log      testenv.Buffer
	metrics  submits
	shadows  *schedule.Shadows
	refused  *schedule.Refusals

	mu     sync.Mutex
	ahead  time.Duration // of the real clock
	frozen time.Time     // what the clock shows while it stands still
}

// now is the bundle's clock.
func (b *bundle) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.frozen.IsZero() {
		return b.frozen.Add(b.ahead)
	}
	return time.Now().Add(b.ahead)
}

// freeze stops the clock, except for advance.
func (b *bundle) freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frozen = time.Now()
}

func (b *bundle) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += d
}

type noQueue struct{}

func (noQueue) Wake(int64, time.Time, time.Duration) {}

// submits counts submitted pushes by their outcome.
type submits struct {
	mu     sync.Mutex
	counts map[string]int
}

func (s *submits) Submitted(outcome, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[outcome]++
}

func (s *submits) CacheAnswered(string) {}

func (s *submits) of(outcome string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[outcome]
}

// patience is the default time-out of a request, a transaction and a call to Redis: more than a busy machine
// needs.
const patience = time.Minute

func patientStore() store.Config {
	return store.Config{Timeout: patience, ReadTimeout: patience, Sealer: testenv.Sealer()}
}

func patientRedis() redisscript.Config { return redisscript.Config{Timeout: patience} }

func (b *bundle) limiter() *ratelimit.Limiter {
	return ratelimit.New(b.rdb, ratelimit.Config{Config: patientRedis()})
}

// setup has two tenants of its own in the database that tests share.
func setup(t *testing.T, policy ...quota.Rule) *bundle {
	t.Helper()
	return setupIn(t, testenv.SharedPostgres(t), testenv.SharedStore(t), policy)
}

// setupAlone has a database of its own, for what concerns all tenants or changes tables.
func setupAlone(t *testing.T, policy ...quota.Rule) *bundle {
	t.Helper()
	url := testenv.Postgres(t)
	st, err := store.Open(t.Context(), url, patientStore())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := setupIn(t, url, st, policy)
	b.alone = true
	return b
}

// exec runs a statement that sees only the rows of the bundle's tenant, unless the database is its own.
func (b *bundle) exec(statement string, args ...any) {
	b.t.Helper()
	if b.alone {
		testenv.Exec(b.t, b.url, statement, args...)
		return
	}
	testenv.Own{Tenant: b.tenant}.Exec(b.t, statement, args...)
}

// query is the value that a query finds among the rows that exec sees.
func query[V any](b *bundle, query string, args ...any) V {
	b.t.Helper()
	if b.alone {
		return testenv.Query[V](b.t, b.url, query, args...)
	}
	return testenv.QueryOwn[V](b.t, testenv.Own{Tenant: b.tenant}, query, args...)
}

func setupIn(t *testing.T, url string, st *store.Store, policy []quota.Rule) *bundle {
	t.Helper()
	b := &bundle{t: t, url: url, store: st}
	b.rdb = testenv.RedisClient(t, testenv.Redis(t))
	if policy == nil {
		policy = testPolicy()
	}
	b.refused = schedule.NewRefusals(b.store, slog.New(slog.DiscardHandler))
	b.shadows = schedule.NewShadows(b.store, slog.New(slog.DiscardHandler), b.now)
	webhooks := notify.NewWebhooks(b.store, notify.WebhooksConfig{MaxPerTenant: 3})
	service := b.service(b.store, policy)
	campaigns := campaignsOf(b.store, b.now)
	b.cfg = Config{
		RequestTimeout: patience, Keys: b.store, MaxKeys: 6, Users: b.store, MaxUsers: 6, PublicURL: "https://console.example.com", Audits: records.Audits{Checks: []records.AuditCheck{{Name: "overdue", Meaning: "It waits.", Guarantee: "I1"}}, Store: b.store},
		Flows:       b.store,
		Failures:    b.store,
		Channels:    records.Channels{List: []records.Channel{{Name: "push", Type: "webhook", Rate: 90, Per: time.Minute, Shares: push.DefaultShares}, {Name: "sms", Type: "sms"}}, Store: b.store},
		Schedules:   recurring.New(b.store, service, b.now, recurring.Config{MaxPerTenant: 20}),
		Campaigns:   campaigns,
		BulkChanges: bulk.New(b.store, service),
		Pauses:      b.store,
		Simulator:   campaign.NewSimulator(b.store, campaigns, service, campaign.SimulatorConfig{Policy: quota.Policy(policy), Parse: campaign.Parse}),
		Log:         slog.New(slog.NewJSONHandler(&b.log, nil)), Now: b.now, Webhooks: webhooks, Policies: policiesOf(b.store, policy), Limiter: b.limiter(),
	}
	b.cfg.OwnChannels = b.ownChannels()
	b.svc = service
	b.api = New(service, b.store, b.cfg)
	b.tenant, b.key = b.newTenant("acme", push.Scopes...)
	b.name = testenv.Query[string](t, url, `SELECT name FROM tenants WHERE id = $1`, b.tenant)
	_, b.other = b.newTenant("other", push.Scopes...)
	return b
}

// ownChannels returns the channels of tenants, beside those of the operator.
func (b *bundle) ownChannels() *ownchannels.Service {
	b.t.Helper()
	var all []channel.Entry
	for _, name := range []string{"push", "sms"} {
		all = append(all, channel.Entry{Name: name, Channel: channel.NewLog(slog.New(slog.DiscardHandler)), Retry: push.Retry{MaxAttempts: 1}})
	}
	operator, err := channel.NewSet(all...)
	if err != nil {
		b.t.Fatal(err)
	}
	bounds := config.TenantChannels{Max: 100, Types: []string{config.Webhook, config.SMS, config.Email, config.FCM, config.APNs, config.Log}}
	open := func(c config.Channel) (channel.Entry, error) {
		return channel.Entry{Name: c.Name, Channel: channel.NewLog(slog.New(slog.DiscardHandler)), Retry: push.Retry{MaxAttempts: 1}}, nil
	}
	directory := ownchannels.NewDirectory(operator, nil, b.store, open, bounds, time.Minute, slog.New(slog.DiscardHandler))
	return ownchannels.NewService(b.store, directory, ownchannels.ServiceConfig{Bounds: bounds, Lease: time.Minute})
}

// reopen gives the API another store, with no more than pushes.
func (b *bundle) reopen() {
	b.t.Helper()
	st, err := store.Open(b.t.Context(), b.url, patientStore())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(st.Close)
	b.api = New(b.service(st, testPolicy()), st, Config{Now: b.now, RequestTimeout: patience})
}

func (b *bundle) service(st *store.Store, policy quota.Policy) *schedule.Service {
	return schedule.New(st, quota.NewCache(b.rdb, patientRedis()), noQueue{}, &b.metrics, b.now,
		schedule.Config{Policy: policy, Channels: []string{"push", "sms"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute, Shadows: b.shadows, Refusals: b.refused, TextSize: b.textSize})
}

// newTenant makes a tenant with a key.
func (b *bundle) newTenant(name string, scopes ...string) (uuid.UUID, string) {
	b.t.Helper()
	id, _, err := b.store.CreateTenant(b.t.Context(), name+" "+rand.Text())
	if err != nil {
		b.t.Fatal(err)
	}
	_, key, err := b.store.CreateKey(b.t.Context(), apikey.NewKey{Tenant: id, Scopes: scopes})
	if err != nil {
		b.t.Fatal(err)
	}
	return id, key
}

// keyID is the id of the tenant's key.
func (b *bundle) keyID() string {
	b.t.Helper()
	caller, err := b.store.Key(b.t.Context(), accounts.HashKey(b.key))
	if err != nil {
		b.t.Fatal(err)
	}
	return caller.Key.String()
}

// send makes a request with the tenant's key, unless the headers, given as names and values, have another.
func (b *bundle) send(method, target, body string, headers ...string) reply {
	b.t.Helper()
	return ask(b.t, b.api, method, target, body, append([]string{"Authorization", "Bearer " + b.key}, headers...)...)
}

// traces counts what a refused request must not leave behind. That it was refused is kept for the recipient's timeline, and is
// part of no quota.
func (b *bundle) traces() (rows int, keys []string) {
	b.t.Helper()
	rows = query[int](b, `SELECT (SELECT count(*) FROM pushes) + (SELECT count(*) FROM sends)`)
	keys, err := b.rdb.Keys(b.t.Context(), "*").Result()
	if err != nil {
		b.t.Fatal(err)
	}
	return rows, slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":refused") })
}

// noTrace demands that nothing was booked.
func (b *bundle) noTrace() {
	b.t.Helper()
	if rows, keys := b.traces(); rows != 0 || len(keys) != 0 {
		b.t.Errorf("%d rows in Postgres and the keys %q in Redis were left behind", rows, keys)
	}
}

// in returns the send time after a time span, in the form of a request.
func (b *bundle) in(d time.Duration) string {
	return b.now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
}

func pushBody(recipient, sendAt, more string) string {
	return `{"recipient":"` + recipient + `","send_at":"` + sendAt + `","message":{"body":"Hello."}` + more + `}`
}

// campaignsOf keeps campaigns in a store.
func campaignsOf(st *store.Store, now func() time.Time) *campaign.Service {
	return campaign.New(st, now, campaign.Config{MaxPerTenant: 20, MaxAudience: 1_000_000, Channels: []string{"push", "sms"}, MaxHorizon: 365 * 24 * time.Hour})
}

// policiesOf keeps policies in a store; the file has plain rules.
func policiesOf(st *store.Store, file quota.Policy) *schedule.Policies {
	var d policy.Document
	for _, r := range file {
		d.Rules = append(d.Rules, policy.Rule{Name: r.Name, Limit: &r.Limit, Window: r.Window.String()})
	}
	return schedule.NewPolicies(st, schedule.PoliciesConfig{File: d, Terms: file, Channels: []string{"push", "sms"}})
}

// importedAtOnce is the number of lines that an import stores in one transaction.
const importedAtOnce = 500

// takeTurns gives the API turns of exports and simulations that the test can take.
func (b *bundle) takeTurns() Config {
	b.cfg.exports, b.cfg.simulations = lists.NewExports(), campaigns.NewSimulations()
	b.api = New(b.svc, b.store, b.cfg)
	return b.cfg
}

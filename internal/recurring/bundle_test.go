package recurring_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// bundle is schedules on real servers, and a worker that runs them.
type bundle struct {
	*recurring.Service
	t         *testing.T
	url       string // of the database
	store     *store.Store
	pushes    *schedule.Service
	campaigns *campaign.Service
	runner    loop.Loop
	policy    quota.Policy
	cache     *quota.Cache
	tenant    uuid.UUID
}

type deaf struct{}

func (deaf) Wake(int64, time.Time, time.Duration) {}
func (deaf) Submitted(string, string)             {}
func (deaf) CacheAnswered(string)                 {}

// stores serializes the tests, because runners process all tenants.
var stores testenv.Stores

func setup(t *testing.T, policy ...quota.Rule) *bundle {
	t.Helper()
	url, st := stores.Take(t)
	return setupOn(t, url, st, policy...)
}

// setupAlone uses a database of its own: a test of locks must not meet the locks of an earlier test.
func setupAlone(t *testing.T) *bundle {
	t.Helper()
	url := testenv.Postgres(t)
	st, err := store.Open(t.Context(), url, store.Config{Timeout: testenv.StoreTimeout, ReadTimeout: testenv.StoreTimeout})
	testenv.Check(t, err)
	t.Cleanup(st.Close)
	return setupOn(t, url, st)
}

func setupOn(t *testing.T, url string, st *store.Store, policy ...quota.Rule) *bundle {
	t.Helper()
	b := &bundle{t: t, url: url, store: st}
	rdb := testenv.RedisClient(t, testenv.Redis(t))
	cache := quota.NewCache(rdb, redisscript.Config{Timeout: time.Minute})
	t.Cleanup(func() { _ = cache.Flush(context.Background()) })
	b.policy, b.cache = policy, cache
	b.pushes = b.servicesAt(time.Now)
	b.Service = recurring.New(b.store, b.pushes, time.Now, recurring.Config{MaxPerTenant: 10_000, Kept: 90 * 24 * time.Hour})
	b.campaigns = campaign.New(b.store, time.Now, campaign.Config{MaxPerTenant: 100, MaxAudience: 1_000_000, Channels: []string{"log", "sms"}, MaxHorizon: 365 * 24 * time.Hour})
	b.runner = b.newRunner()
	b.tenant = b.newTenant()
	return b
}

// servicesAt returns a service with a clock.
func (b *bundle) servicesAt(now func() time.Time) *schedule.Service {
	return schedule.New(b.store, b.cache, deaf{}, deaf{}, now, schedule.Config{
		Policy: b.policy, Channels: []string{"log", "sms"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute,
	})
}

func (b *bundle) newRunner() loop.Loop {
	return recurring.NewRunner(b.store, b.pushes, b.campaigns, quiet, 90*24*time.Hour)
}

func (b *bundle) newTenant() uuid.UUID {
	b.t.Helper()
	id, _, err := b.store.CreateTenant(b.t.Context(), uuid.NewString())
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// create creates a schedule that occurs every minute, for a recipient of its own, with changes.
func (b *bundle) create(change recurring.Change) recurrence.Schedule {
	b.t.Helper()
	return b.createFor(b.tenant, change)
}

func (b *bundle) createFor(tenant uuid.UUID, change recurring.Change) recurrence.Schedule {
	b.t.Helper()
	if change.Cron == nil {
		change.Cron = new("@every 1m")
	}
	if change.Pattern == nil {
		change.Pattern = &recurrence.Pattern{Recipient: uuid.NewString(), Message: json.RawMessage(`{"title":"hello"}`)}
	}
	p, _, err := b.Create(b.t.Context(), tenant, change, recurring.Key{})
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// age moves the begin of a schedule into the past, as if no worker had run since. With @every 1m, it occurred a minute
// later for the first time.
func (b *bundle) age(id uuid.UUID, ago time.Duration) (began time.Time) {
	b.t.Helper()
	return testenv.Query[time.Time](b.t, b.url, `
		UPDATE schedules SET began_at = n.began, done_at = n.began, next_at = n.began + interval '1 minute'
		FROM (SELECT date_trunc('second', clock_timestamp() - $2::interval) AS began) n WHERE id = $1 RETURNING began_at`, [16]byte(id), ago)
}

// ageHours is age for a schedule with @every 1h.
func (b *bundle) ageHours(id uuid.UUID, ago time.Duration) {
	b.t.Helper()
	b.age(id, ago)
	testenv.Exec(b.t, b.url, `UPDATE schedules SET next_at = began_at + interval '1 hour' WHERE id = $1`, [16]byte(id))
}

// pass makes passes of the worker until there is nothing more to do.
func (b *bundle) pass() {
	b.t.Helper()
	passAll(b.t, b.runner)
}

func passAll(t *testing.T, l loop.Loop) {
	t.Helper()
	for full := true; full; {
		var err error
		if full, err = l.Pass(t.Context()); err != nil {
			t.Error(err)
			return
		}
	}
}

// runs returns the records of a schedule's occurrences, the first one first.
func (b *bundle) runs(p recurrence.Schedule) []recurrence.Run {
	b.t.Helper()
	var all []recurrence.Run
	for before := (time.Time{}); ; {
		page, err := b.Runs(b.t.Context(), p.Tenant, p.ID, before, 100)
		if err != nil {
			b.t.Fatal(err)
		}
		if all, before = append(all, page.Runs...), page.Next; before.IsZero() {
			slices.Reverse(all)
			return all
		}
	}
}

// outcomes returns the outcomes and reasons of a schedule's runs.
func (b *bundle) outcomes(p recurrence.Schedule) []string {
	b.t.Helper()
	var all []string
	for _, r := range b.runs(p) {
		text := string(r.Outcome)
		if r.Reason != "" {
			text += " " + r.Reason
		}
		all = append(all, text)
	}
	return all
}

// sent lists the pushes for the recipient of a schedule, by their send times.
func (b *bundle) sent(p recurrence.Schedule) []push.Push {
	b.t.Helper()
	page, err := b.store.List(b.t.Context(), p.Tenant, push.Filter{Recipient: p.Pattern.Recipient}, push.Position{}, 500)
	if err != nil {
		b.t.Fatal(err)
	}
	return page.Pushes
}

func (b *bundle) want(p recurrence.Schedule, outcomes ...string) {
	b.t.Helper()
	if got := b.outcomes(p); !slices.Equal(got, outcomes) {
		b.t.Errorf("%q, want %q", got, outcomes)
	}
}

package console

import (
	"crypto/rand"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/httpapi"
	"github.com/sendquota/sendquota/internal/httpapi/records"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/notify"
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
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bundle has a console in front of a real API on real servers, and a browser without scripts with a signed-in admin.
type bundle struct {
	t       testing.TB
	url     string // of the database
	store   *store.Store
	tenant  uuid.UUID
	key     string
	api     *client.Client // with the tenant's key
	handler http.Handler   // the API
	rdb     redisclient.Client
	console http.Handler
	who     *signedIn
	cookies map[string]string
	log     testenv.Buffer

	pushes *schedule.Service
	runner loop.Loop // carries campaigns on, of all tenants; of setupAlone
	bulks  loop.Loop // carries bulk changes on, of all tenants; of setupAlone
}

// signedIn is an authenticator whose user has signed in already.
type signedIn struct{ frame.Visitor }

func (s *signedIn) SignedIn(*http.Request) (frame.Visitor, bool) { return s.Visitor, s.Role != "" }
func (s *signedIn) Mount(chi.Router, *frame.Site)                {}
func (s *signedIn) Wrap(h http.Handler) http.Handler             { return h }
func (s *signedIn) Cookie(name, value string, seconds int, site http.SameSite) *http.Cookie {
	return (&SignIn{}).Cookie(name, value, seconds, site)
}

type noQueue struct{}

func (noQueue) Wake(int64, time.Time, time.Duration) {}

type noMetrics struct{}

func (noMetrics) Submitted(string, string) {}
func (noMetrics) CacheAnswered(string)     {}

// longest is the timeout of a request, a transaction and a Redis command: more than a busy machine needs.
const longest = time.Minute

func (b *bundle) limiter() *ratelimit.Limiter {
	return ratelimit.New(b.rdb, ratelimit.Config{Config: redisscript.Config{Timeout: longest}})
}

// setup has a tenant of its own in the database that tests share.
func setup(t testing.TB) *bundle {
	t.Helper()
	return setupIn(t, testenv.SharedPostgres(t), testenv.SharedStore(t), "acme "+rand.Text())
}

// setupAlone has a database of its own, for what concerns all tenants: loops of workers, and users by their addresses.
func setupAlone(t testing.TB) *bundle {
	t.Helper()
	url := testenv.Postgres(t)
	st, err := store.Open(t.Context(), url, store.Config{Timeout: longest, ReadTimeout: longest, Sealer: testenv.Sealer()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	b := setupIn(t, url, st, "acme")
	b.runner = campaign.NewRunner(b.store, b.pushes, slog.New(slog.DiscardHandler), campaign.RunnerConfig{Policy: rules, Parse: campaign.Parse})
	b.bulks = bulk.NewRunner(b.store, b.pushes, slog.New(slog.DiscardHandler))
	return b
}

var rules = quota.Policy{
	{Name: "per-minute", Limit: 1, Window: time.Minute}, {Name: "per-hour", Limit: 5, Window: time.Hour}, {Name: "per-day", Limit: 10, Window: 24 * time.Hour},
}

// textSize returns the sizes of texts on the channel sms.
func textSize(channel string, message json.RawMessage) (sms.Size, bool) {
	var m struct{ Body string }
	_ = json.Unmarshal(message, &m)
	return sms.Measure(m.Body), channel == "sms"
}

func setupIn(t testing.TB, url string, st *store.Store, tenant string) *bundle {
	t.Helper()
	b := &bundle{t: t, url: url, store: st, cookies: map[string]string{}}
	var err error
	b.rdb = testenv.RedisClient(t, testenv.Redis(t))
	log := slog.New(slog.NewJSONHandler(&b.log, nil))
	var file policy.Document
	for _, r := range rules {
		file.Rules = append(file.Rules, policy.Rule{Name: r.Name, Limit: &r.Limit, Window: r.Window.String()})
	}
	b.pushes = schedule.New(b.store, quota.NewCache(b.rdb, redisscript.Config{Timeout: longest}), noQueue{}, noMetrics{}, time.Now, schedule.Config{
		Policy: rules, Channels: []string{"push", "sms"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute,
		Shadows: schedule.NewShadows(b.store, log, time.Now), Refusals: schedule.NewRefusals(b.store, log), TextSize: textSize,
	})
	campaigns := campaign.New(b.store, time.Now, campaign.Config{MaxPerTenant: 20, MaxAudience: 1_000_000, Channels: []string{"push", "sms"}, MaxHorizon: 365 * 24 * time.Hour, TextSize: textSize})
	own := ownChannels(t, b.store)
	api := httpapi.New(b.pushes, b.store, httpapi.Config{
		RequestTimeout: longest, Log: log, Keys: b.store, MaxKeys: 20, Users: b.store, PublicURL: "https://console.example.com", Audits: records.Audits{Checks: []records.AuditCheck{{Name: "overdue", Meaning: "It waits.", Guarantee: "I1"}}, Store: b.store},
		Flows:       b.store,
		BulkChanges: bulk.New(b.store, b.pushes),
		Pauses:      b.store,
		Failures:    b.store,
		Channels:    own.listed(b.store),
		OwnChannels: own.Service,
		Schedules:   recurring.New(b.store, b.pushes, time.Now, recurring.Config{MaxPerTenant: 20}),
		Campaigns:   campaigns,
		Simulator:   campaign.NewSimulator(b.store, campaigns, b.pushes, campaign.SimulatorConfig{Policy: rules, Parse: campaign.Parse}),
		Webhooks:    notify.NewWebhooks(b.store, notify.WebhooksConfig{MaxPerTenant: 3}),
		Policies:    schedule.NewPolicies(b.store, schedule.PoliciesConfig{File: file, Terms: rules, Channels: []string{"push", "sms"}}),
		Limiter:     b.limiter(),
	})
	if b.tenant, _, err = b.store.CreateTenant(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	if _, b.key, err = b.store.CreateKey(t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: push.Scopes}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	if b.api, err = client.New(server.URL, b.key, client.Config{}); err != nil {
		t.Fatal(err)
	}
	b.who = &signedIn{frame.Visitor{Caller: push.Caller{Tenant: b.tenant, User: uuid.New(), Scopes: push.Scopes}, Name: "Ada", Role: "admin"}}
	b.handler = api
	b.console = New(api, b.who, frame.Config{Log: log, APIAddress: "https://api.example.com"})
	return b
}

// reply is a page as a browser gets it, its entities as the characters that they stand for.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// get opens a page, and follows no redirect.
func (b *bundle) get(path string) reply {
	b.t.Helper()
	return b.send(httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, path, nil))
}

// post sends a form, given as names and values.
func (b *bundle) post(path string, fields ...string) reply {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(r)
}

func (b *bundle) send(r *http.Request) reply {
	b.t.Helper()
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	rec := httptest.NewRecorder()
	b.console.ServeHTTP(rec, r)
	answer := rec.Result()
	for _, c := range answer.Cookies() {
		b.cookies[c.Name] = c.Value
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, html.UnescapeString(string(text))}
}

// follow opens the page that an answer leads to.
func (b *bundle) follow(r reply) reply {
	b.t.Helper()
	if r.Status != http.StatusSeeOther {
		b.t.Fatalf("%d %s", r.Status, r.Body)
	}
	return b.get(r.Header.Get("Location"))
}

// has demands texts of a page.
func (r reply) has(t testing.TB, status int, texts ...string) reply {
	t.Helper()
	if r.Status != status {
		t.Errorf("status %d, want %d", r.Status, status)
	}
	for _, text := range texts {
		if !strings.Contains(r.Body, text) {
			t.Errorf("the page lacks %q:\n%s", text, r.text())
		}
	}
	return r
}

// lacks wants texts not to be in a page.
func (r reply) lacks(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(r.Body, text) {
			t.Errorf("the page has %q:\n%s", text, r.text())
		}
	}
}

var (
	tags  = regexp.MustCompile(`(?s)<option.*?</option>|<footer.*</footer>|<head>.*</head>|<[^>]*>`)
	lines = regexp.MustCompile(`\s*\n\s*`)
)

// text returns the text of a page, for messages of tests.
func (r reply) text() string { return lines.ReplaceAllString(tags.ReplaceAllString(r.Body, ""), "\n") }

// hidden is the value of a hidden field, which is the first of that name.
func hidden(t testing.TB, page reply, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page.Body)
	if found == nil {
		t.Fatalf("the page has no field %s:\n%s", name, page.text())
	}
	return found[1]
}

// submit books a push at a distance from now.
func (b *bundle) submit(recipient string, ahead time.Duration) client.Push {
	b.t.Helper()
	one, err := b.api.Pushes.Submit(b.t.Context(), "", client.NewPush{Recipient: recipient, Message: client.Message{"title": "Hello"}, SendAt: time.Now().Add(ahead)})
	if err != nil {
		b.t.Fatal(err)
	}
	return one
}

// startCampaign starts a campaign with an audience in CSV and decides its recipients.
func (b *bundle) startCampaign(name string, at time.Time, audience string) client.Campaign {
	b.t.Helper()
	made, err := b.api.Campaigns.Create(b.t.Context(), "", client.NewCampaign{Name: name, SendAt: at, Message: client.Message{"title": "Hi"}})
	if err == nil {
		_, err = b.api.Campaigns.PutAudience(b.t.Context(), made.ID, strings.NewReader(audience), client.CSV)
	}
	if err == nil {
		made, err = b.api.Campaigns.Start(b.t.Context(), made.ID)
	}
	for range 10 {
		if err == nil {
			_, err = b.runner.Pass(b.t.Context())
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
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
	t       *testing.T
	url     string // of the database
	rdb     *redis.Client
	store   *store.Store
	api     http.Handler
	tenant  uuid.UUID
	key     string
	other   string // another tenant's key
	log     testenv.Buffer
	metrics submits

	mu    sync.Mutex
	ahead time.Duration // of the real clock
}

// now is the bundle's clock.
func (b *bundle) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.ahead)
}

func (b *bundle) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead += d
}

type noQueue struct{}

func (noQueue) Arm(context.Context, []push.WakeUp) error { return nil }

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

func setup(t *testing.T, policy ...quota.Rule) *bundle {
	t.Helper()
	b := &bundle{t: t, url: testenv.Postgres(t)}
	var err error
	if b.store, err = store.Open(t.Context(), b.url, store.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.store.Close)
	o, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	b.rdb = redis.NewClient(o)
	t.Cleanup(func() { _ = b.rdb.Close() })
	if policy == nil {
		policy = testPolicy()
	}
	webhooks := notify.NewWebhooks(b.store, notify.WebhooksConfig{MaxPerTenant: 3})
	b.api = New(b.service(b.store, policy), b.store, Config{
		Log: slog.New(slog.NewJSONHandler(&b.log, nil)), Now: b.now, Webhooks: webhooks, Limiter: ratelimit.New(b.rdb, ratelimit.Config{}),
	})
	b.tenant, b.key = b.newTenant("acme", push.Scopes...)
	_, b.other = b.newTenant("other", push.Scopes...)
	return b
}

func (b *bundle) service(st *store.Store, policy quota.Policy) *schedule.Service {
	return schedule.New(st, quota.NewCache(b.rdb, redisscript.Config{}), noQueue{}, slog.New(slog.DiscardHandler), &b.metrics, b.now,
		schedule.Config{Policy: policy, Channels: []string{"push", "sms"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, ArmLease: time.Minute})
}

// newTenant makes a tenant with a key.
func (b *bundle) newTenant(name string, scopes ...string) (uuid.UUID, string) {
	b.t.Helper()
	id, _, err := b.store.CreateTenant(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	key, err := b.store.CreateKey(b.t.Context(), id, scopes, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return id, key
}

// keyID is the id of the tenant's key.
func (b *bundle) keyID() string {
	b.t.Helper()
	caller, err := b.store.Key(b.t.Context(), store.HashKey(b.key))
	if err != nil {
		b.t.Fatal(err)
	}
	return caller.Key.String()
}

// reply is an answer, with its body as JSON.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// send makes a request with the tenant's key, unless the headers, given as names and values, have another.
func (b *bundle) send(method, target, body string, headers ...string) reply {
	b.t.Helper()
	return ask(b.t, b.api, method, target, body, append([]string{"Authorization", "Bearer " + b.key}, headers...)...)
}

func ask(t *testing.T, h http.Handler, method, target, body string, headers ...string) reply {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	got := reply{status: rec.Code, header: rec.Header(), text: rec.Body.String()}
	if strings.Contains(got.header.Get("Content-Type"), "json") && got.header.Get("Content-Encoding") == "" && got.text != "" {
		if !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("%s %s answers no JSON: %s", method, target, got.text)
		}
		_ = json.Unmarshal(rec.Body.Bytes(), &got.body) // a number may be beyond float64
		fitsDocument(t, r, rec)
	}
	return got
}

var document = sync.OnceValue(newTestAPI)

// fitsDocument holds every answer that a test gets to what the document says of it.
func fitsDocument(t *testing.T, r *http.Request, rec *httptest.ResponseRecorder) {
	t.Helper()
	doc := document()
	route := chi.NewRouteContext()
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	if !doc.router.Match(route, r.Method, path) {
		return
	}
	i := slices.IndexFunc(doc.operations, func(op *huma.Operation) bool { return op.Method == r.Method && op.Path == route.RoutePattern() })
	if i < 0 {
		return // a page
	}
	described := doc.operations[i].Responses[strconv.Itoa(rec.Code)]
	if described == nil {
		t.Errorf("%s %s answers %d, which is not documented", r.Method, route.RoutePattern(), rec.Code)
		return
	}
	media := described.Content[rec.Header().Get("Content-Type")]
	if media == nil {
		t.Errorf("%s %s answers %d with a %s, which is not documented", r.Method, route.RoutePattern(), rec.Code, rec.Header().Get("Content-Type"))
		return
	}
	var v any
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		return // a number beyond float64
	}
	if errs := validate(doc.huma.OpenAPI().Components.Schemas, media.Schema, huma.ModeReadFromServer, v); len(errs) > 0 {
		t.Errorf("%s %s answers %d, which does not fit its schema: %v\n%.2000s", r.Method, route.RoutePattern(), rec.Code, errs, rec.Body)
	}
}

// must demands a status, and for a problem its name.
func (r reply) must(t *testing.T, status int, name ...string) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.text)
	}
	for _, n := range name {
		if r.body["type"] != "urn:sendquota:problem:"+n {
			t.Fatalf("problem %v, want %s: %s", r.body["type"], n, r.text)
		}
		if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
			t.Fatalf("a problem of type %s", ct)
		}
		if r.body["status"] != float64(status) || r.body["title"] == "" || r.body["detail"] == "" {
			t.Fatalf("an incomplete problem: %s", r.text)
		}
	}
	return r
}

// at walks into the body by names and indexes.
func (r reply) at(t *testing.T, path ...any) any {
	t.Helper()
	var v any = r.body
	for _, p := range path {
		switch step := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			var ok bool
			if v, ok = m[step]; !ok {
				t.Fatalf("no %v in %s", path, r.text)
			}
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				t.Fatalf("no %v in %s", path, r.text)
			}
			v = l[step]
		}
	}
	return v
}

// traces counts what a refused request must not leave behind.
func (b *bundle) traces() (rows int, keys []string) {
	b.t.Helper()
	rows = testenv.Query[int](b.t, b.url, `SELECT (SELECT count(*) FROM pushes) + (SELECT count(*) FROM sends)`)
	keys, err := b.rdb.Keys(b.t.Context(), "*").Result()
	if err != nil {
		b.t.Fatal(err)
	}
	return rows, keys
}

// noTrace demands that nothing was booked.
func (b *bundle) noTrace() {
	b.t.Helper()
	if rows, keys := b.traces(); rows != 0 || len(keys) != 0 {
		b.t.Errorf("%d rows in Postgres and the keys %q in Redis were left behind", rows, keys)
	}
}

// in is a send time so far ahead, as a request writes it.
func (b *bundle) in(d time.Duration) string {
	return b.now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
}

func pushBody(recipient, sendAt, more string) string {
	return `{"recipient":"` + recipient + `","send_at":"` + sendAt + `","message":{"body":"Hello."}` + more + `}`
}

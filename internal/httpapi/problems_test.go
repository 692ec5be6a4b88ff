package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/campaigns"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestProblem_Unforeseen: an unexpected error is logged with the request's id, and its text does not reach the caller.
func TestProblem_Unforeseen(t *testing.T) {
	for name, keys := range map[string]rest.Authenticator{
		"error": failing{errors.New("secret: column x of table y")},
		"panic": failing{nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log testenv.Buffer
			h := New(nil, keys, Config{Log: slog.New(slog.NewJSONHandler(&log, nil))})
			r := ask(t, h, "GET", "/v1/pushes", "", "Authorization", "Bearer k", "X-Request-Id", "req-1").must(t, 500, "internal")
			if strings.Contains(r.text, "secret") {
				t.Errorf("the caller sees %s", r.text)
			}
			if got := log.String(); !strings.Contains(got, "secret") || !strings.Contains(got, `"request_id":"req-1"`) {
				t.Errorf("the log says %s", got)
			}
			if name == "panic" && !strings.Contains(log.String(), "problems_test.go") {
				t.Error("the log has no stack")
			}
		})
	}
}

// failing is an authenticator that fails, or panics without an error.
type failing struct{ err error }

func (f failing) Key(context.Context, [32]byte) (push.Caller, error) {
	if f.err == nil {
		panic("secret panic")
	}
	return push.Caller{}, f.err
}

func (failing) RecordKeyUse(context.Context, uuid.UUID) error { return nil }

// everything is an authenticator that accepts every key.
type everything struct{}

func (everything) Key(context.Context, [32]byte) (push.Caller, error) {
	return push.Caller{Scopes: push.Scopes}, nil
}

func (everything) RecordKeyUse(context.Context, uuid.UUID) error { return nil }

// TestProblem_PostgresDown: without Postgres every operation answers 503, for the key as for the work.
func TestProblem_PostgresDown(t *testing.T) {
	b := setup(t)
	down, err := store.Open(t.Context(), "postgres://user@127.0.0.1:1/nothing", store.Config{Timeout: 300 * time.Millisecond, Sealer: testenv.Sealer()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(down.Close)
	svc := b.service(down, testPolicy())
	const id, hook = "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", "/v1/webhooks/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	const campaign = campaigns.Path + "/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	body := pushBody("user-1", b.in(time.Hour), "")
	for name, keys := range map[string]rest.Authenticator{"keys too": down, "keys known": everything{}} {
		h := New(svc, keys, Config{Webhooks: notify.NewWebhooks(down, notify.WebhooksConfig{}), Policies: policiesOf(down, testPolicy()), Campaigns: campaignsOf(down, b.now)})
		for _, c := range [][3]string{
			{"POST", "/v1/pushes", body}, {"POST", "/v1/pushes/batch", `{"pushes":[` + body + `]}`}, {"GET", "/v1/pushes", ""}, {"GET", id, ""},
			{"POST", id + "/cancel", ""}, {"PATCH", id, `{"send_at":"` + b.in(time.Hour) + `"}`}, {"POST", "/v1/quota/check", `{"recipient":"a"}`},
			{"GET", "/v1/recipients/a/quota", ""}, {"GET", "/v1/recipients/a/slots", ""},
			{"PUT", "/v1/recipients/a", `{}`}, {"GET", "/v1/recipients/a", ""}, {"GET", "/v1/recipients", ""}, {"DELETE", "/v1/recipients/a", ""}, {"GET", "/v1/recipients/a/timeline", ""},
			{"POST", "/v1/webhooks", `{"url":"https://example.com"}`}, {"GET", "/v1/webhooks", ""}, {"GET", hook, ""}, {"DELETE", hook, ""},
			{"GET", "/v1/policy", ""}, {"PUT", "/v1/policy", `{}`}, {"PUT", "/v1/policy?forecast=true", `{}`}, {"DELETE", "/v1/policy", ""}, {"GET", "/v1/policy/versions", ""},
			{"GET", "/v1/policy/shadow", ""}, {"GET", "/v1/policy/operations/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", ""},
			{"POST", campaigns.Path, `{"message":{}}`}, {"GET", campaigns.Path, ""}, {"GET", campaign, ""}, {"PATCH", campaign, `{}`}, {"DELETE", campaign, ""}, {"POST", campaign + "/preview", ""},
			{"POST", "/v1/pushes", `{"recipient":"a","template":true,"message":{"body":"{{ a }}"}}`},
			{"POST", hook + "/test", ""}, {"POST", hook + "/enable", ""}, {"POST", hook + "/rotate-secret", ""}, {"GET", hook + "/deliveries", ""},
			{"POST", hook + "/deliveries/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01/replay", ""}, {"POST", hook + "/replay", `{"since":"` + b.in(0) + `"}`},
		} {
			t.Run(name+" "+c[0]+" "+c[1], func(t *testing.T) {
				t.Parallel()
				r := ask(t, h, c[0], c[1], c[2], "Authorization", "Bearer k").must(t, 503, "unavailable")
				if r.header.Get("Retry-After") != "1" || strings.Contains(r.text, "127.0.0.1") {
					t.Errorf("%v %s", r.header, r.text)
				}
			})
		}
	}
}

func TestProblem_NotCancelable(t *testing.T) {
	b := setupAlone(t)
	testenv.Forge(t, b.url)
	b.exec(`SELECT make_partitions('sends', '2026-01-01', '2026-01-01')`)
	b.reopen() // a store that has not read the partitions yet
	id := b.send("POST", "/v1/pushes", pushBody("user-1", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	b.exec(`
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome, provider_message_id)
		SELECT id, 1, tenant_id, recipient_key, recipient, channel, '2026-01-01 00:00:00.5Z', '2026-01-01 00:01Z', '2026-01-01 00:00:01Z', 'unknown', 'm-1' FROM pushes`)
	b.exec(`UPDATE pushes SET status = 'sent', attempts = 1, attempted_at = '2026-01-01 00:00:00.5Z', possibly_delivered = true, last_error = 'timeout'`)
	r := b.send("POST", "/v1/pushes/"+id+"/cancel", "").must(t, 409, "not-cancelable")
	if r.at(t, "push", "id") != id || r.at(t, "push", "status") != "sent" || r.at(t, "push", "possibly_delivered") != true || r.at(t, "push", "last_error") != "timeout" {
		t.Errorf("%s", r.text)
	}
	for name, want := range map[string]any{
		"attempt": 1.0, "started_at": "2026-01-01T00:00:00.5Z", "ended_at": "2026-01-01T00:00:01Z", "outcome": "unknown", "provider_message_id": "m-1", "error": "",
	} {
		if got := r.at(t, "push", "sends", 0, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	b.send("PATCH", "/v1/pushes/"+id, `{"send_at":"`+b.in(2*time.Hour)+`"}`).must(t, 409, "not-reschedulable").at(t, "push", "sends", 0)
}

func TestProblem_MediaAndRoutes(t *testing.T) {
	b := setup(t)
	body := pushBody("user-1", b.in(time.Hour), "")
	for _, headers := range [][]string{
		{"Content-Type", "text/plain"}, {"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Type", "application/json; charset=latin1"},
		{"Content-Encoding", "gzip"}, {"Content-Encoding", "identity, br"}, {"Content-Type", "a b"},
	} {
		r := b.send("POST", "/v1/pushes", body, headers...).must(t, 415, "unsupported-media-type")
		if got := r.header.Get("Accept-Encoding"); (got == "identity") != (headers[0] == "Content-Encoding") {
			t.Errorf("%q: Accept-Encoding %q", headers, got)
		}
	}
	packed := b.send("POST", "/v1/recipients/import", "recipient\n", "Content-Type", "text/csv", "Content-Encoding", "gzip").must(t, 415, "unsupported-media-type")
	if got := packed.header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("an import: Accept-Encoding %q", got)
	}
	for i, headers := range [][]string{
		{"Content-Type", ""}, {"Content-Type", "Application/JSON; charset=UTF-8"}, {"Content-Encoding", "identity"}, {"Content-Type", "application/json; charset=utf8"},
		{"Content-Type", `application/json;charset="utf-8"`}, {"Content-Type", `APPLICATION/JSON; CHARSET="UTF8"`},
	} {
		b.send("POST", "/v1/pushes", pushBody("user-9", b.in(time.Duration(i+1)*time.Hour), ""), headers...).must(t, 201)
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/nothing", "/v1/pushes/", "/nothing", "/v1/recipients//quota"} {
		r := ask(t, b.api, "GET", path, "")
		if path == "/v1/pushes/" || path == "/v1/recipients//quota" {
			if r.status != 404 && r.status != 401 {
				t.Errorf("%s: %d", path, r.status)
			}
			continue
		}
		r.must(t, 404, "not-found")
	}
	r := b.send("DELETE", "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", "").must(t, 405, "method-not-allowed")
	if got := strings.Join(r.header["Allow"], " "); got != "GET HEAD PATCH" {
		t.Errorf("Allow %q", got)
	}
	b.send("GET", "/v1/pushes/batch", "").must(t, 422, "invalid-request") // batch is no id
	b.send("PUT", "/v1/pushes", body).must(t, 405, "method-not-allowed")
}

func TestAnswer_Headers(t *testing.T) {
	b := setup(t)
	for given, kept := range map[string]bool{"abc-1._Z": true, "": false, "a b": false, strings.Repeat("x", 65): false, "ä": false, "a\tb": false} {
		r := b.send("GET", "/v1/pushes", "", "X-Request-Id", given).must(t, 200)
		if got := r.header.Get("X-Request-Id"); (got == given) != kept || got == "" {
			t.Errorf("%q became %q", given, got)
		}
	}
	for _, path := range []string{"/v1/pushes", "/healthz", "/nothing", "/docs"} {
		r := b.send("GET", path, "")
		if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v", path, r.header)
		}
		if got := r.header.Get("Cache-Control"); (got == "no-store") != (path == "/v1/pushes") {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
		if r.header.Get("Link") != "" || strings.Contains(r.text, "$schema") && path == "/v1/pushes" {
			t.Errorf("%s: %v %s", path, r.header, r.text)
		}
	}
	if r := b.send("HEAD", "/v1/pushes", ""); r.status != 200 {
		t.Errorf("HEAD: %d", r.status)
	}
}

func TestObserve_Timeout(t *testing.T) {
	b := setup(t)
	var seen []string
	h := New(b.service(b.store, testPolicy()), b.store, Config{
		RequestTimeout: time.Nanosecond,
		Observe: func(route, method string, status int, seconds float64) {
			if seconds < 0 || seconds > 10 {
				t.Errorf("took %v s", seconds)
			}
			seen = append(seen, strings.Join([]string{route, method, http.StatusText(status)}, " "))
		},
	})
	ask(t, h, "GET", "/v1/pushes", "", "Authorization", "Bearer "+b.key).must(t, 503, "unavailable")
	ask(t, h, "GET", "/v1/pushes/x", "").must(t, 401, "unauthorized")
	ask(t, h, "GET", "/x", "").must(t, 404, "not-found")
	want := "/v1/pushes GET Service Unavailable, /v1/pushes/{id} GET Unauthorized, unmatched GET Not Found"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("observed %s, want %s", got, want)
	}
}

// TestProblem_PushGone: a request is repeated after its push was removed. It gets a problem, and nothing is booked; also when
// its send time has come meanwhile. In a batch each push has its own answer, unless it is atomic.
func TestProblem_PushGone(t *testing.T) {
	b := setup(t)
	one, two, three := pushBody("user-1", b.in(time.Hour), ""), pushBody("user-2", b.in(time.Hour), ""), pushBody("user-3", b.in(time.Hour), "")
	batch := `{"pushes":[` + two + `,` + three + `]}`
	atomic := `{"atomic":true,"pushes":[` + pushBody("user-4", b.in(time.Hour), "") + `,` + pushBody("user-5", b.in(time.Hour), "") + `]}`
	id := b.send("POST", "/v1/pushes", one, "Idempotency-Key", "one").must(t, 201).at(t, "id")
	first := b.send("POST", "/v1/pushes/batch", batch, "Idempotency-Key", "batch").must(t, 200)
	b.send("POST", "/v1/pushes/batch", atomic, "Idempotency-Key", "atomic").must(t, 200)
	b.exec(`WITH gone AS (DELETE FROM pushes WHERE recipient IN ('user-1', 'user-2', 'user-4') RETURNING id) DELETE FROM live WHERE push_id IN (SELECT id FROM gone)`)
	for _, later := range []time.Duration{0, 2 * time.Hour} {
		b.advance(later)
		if r := b.send("POST", "/v1/pushes", one, "Idempotency-Key", "one").must(t, 410, "push-gone"); r.at(t, "push_id") != id {
			t.Errorf("%s", r.text)
		}
		b.send("POST", "/v1/pushes", two, "Idempotency-Key", "one").must(t, 422, "idempotency-key-reused")
		r := b.send("POST", "/v1/pushes/batch", batch, "Idempotency-Key", "batch").must(t, 200)
		if r.at(t, "results", 0, "problem", "status") != 410.0 || r.at(t, "results", 0, "problem", "push_id") != first.at(t, "results", 0, "push", "id") ||
			r.at(t, "results", 1, "push", "id") != first.at(t, "results", 1, "push", "id") {
			t.Errorf("%s", r.text)
		}
		b.send("POST", "/v1/pushes/batch", atomic, "Idempotency-Key", "atomic").must(t, 410, "push-gone")
	}
	if n := query[int](b, `SELECT count(*) FROM pushes`); n != 2 {
		t.Errorf("%d pushes", n)
	}
}

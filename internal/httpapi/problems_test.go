package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestProblem_Unforeseen: what nobody expects is logged with the request's id, and its text does not reach the caller.
func TestProblem_Unforeseen(t *testing.T) {
	for name, keys := range map[string]authenticator{
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

func (failing) SeeKey(context.Context, uuid.UUID) error { return nil }

// everything is an authenticator that lets everybody in.
type everything struct{}

func (everything) Key(context.Context, [32]byte) (push.Caller, error) {
	return push.Caller{Scopes: push.Scopes}, nil
}

func (everything) SeeKey(context.Context, uuid.UUID) error { return nil }

// TestProblem_PostgresDown: without Postgres every operation answers 503, for the key as for the work.
func TestProblem_PostgresDown(t *testing.T) {
	b := setup(t)
	down, err := store.Open(t.Context(), "postgres://nobody@127.0.0.1:1/nothing", store.Config{Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(down.Close)
	svc := b.service(down, testPolicy())
	const id, hook = "/v1/pushes/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", "/v1/webhooks/0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	body := pushBody("user-1", b.in(time.Hour), "")
	for name, keys := range map[string]authenticator{"keys too": down, "keys known": everything{}} {
		h := New(svc, keys, Config{Webhooks: notify.NewWebhooks(down, notify.WebhooksConfig{})})
		for _, c := range [][3]string{
			{"POST", "/v1/pushes", body}, {"POST", "/v1/pushes/batch", `{"pushes":[` + body + `]}`}, {"GET", "/v1/pushes", ""}, {"GET", id, ""},
			{"POST", id + "/cancel", ""}, {"PATCH", id, `{"send_at":"` + b.in(time.Hour) + `"}`}, {"POST", "/v1/quota/check", `{"recipient":"a"}`},
			{"GET", "/v1/recipients/a/quota", ""}, {"GET", "/v1/recipients/a/slots", ""},
			{"POST", "/v1/webhooks", `{"url":"https://example.com"}`}, {"GET", "/v1/webhooks", ""}, {"GET", hook, ""}, {"DELETE", hook, ""},
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
	b := setup(t)
	id := b.send("POST", "/v1/pushes", pushBody("user-1", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	testenv.Exec(t, b.url, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome, provider_message_id)
		SELECT id, 1, tenant_id, recipient_key, recipient, channel, '2026-01-01 00:00:00.5Z', '2026-01-01 00:01Z', '2026-01-01 00:00:01Z', 'unknown', 'm-1' FROM pushes`)
	testenv.Exec(t, b.url, `UPDATE pushes SET status = 'sent', attempts = 1, possibly_delivered = true, last_error = 'timeout'`)
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
		{"Content-Encoding", "gzip"}, {"Content-Type", "a b"},
	} {
		b.send("POST", "/v1/pushes", body, headers...).must(t, 415, "unsupported-media-type")
	}
	for i, headers := range [][]string{{"Content-Type", ""}, {"Content-Type", "Application/JSON; charset=UTF-8"}, {"Content-Encoding", "identity"}} {
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

// TestBody_Endless sends a body of unknown length over a real connection.
func TestBody_Endless(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.api)
	defer server.Close()
	endless := io.MultiReader(strings.NewReader(`{"recipient":"`), strings.NewReader(strings.Repeat("x", 1<<20)))
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/pushes", endless)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 413 || !res.Close {
		t.Errorf("%d, closed %v", res.StatusCode, res.Close)
	}
}

// TestBody_DrainedIfTooLarge: callers that know no other way get the answer to a body that is too large as
// well. Those that ask before they write are not told to.
func TestBody_DrainedIfTooLarge(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.api)
	defer server.Close()
	const size = 10 << 20
	for name, c := range map[string]struct {
		headers, body string
	}{
		"of known length":   {fmt.Sprintf("Content-Length: %d\r\n", size), strings.Repeat(" ", size)},
		"of unknown length": {"Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, strings.Repeat(" ", size))},
		"held back":         {fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n", size), ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			head := "POST /v1/pushes/batch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + b.key + "\r\n" + c.headers + "\r\n"
			if _, err := io.WriteString(conn, head+c.body); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != 413 {
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
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

// TestRequestLog_Secrets holds what the log shows, and what it must not.
func TestRequestLog_Secrets(t *testing.T) {
	b := setup(t)
	body := pushBody("secret-recipient", b.in(time.Hour), `,"to":"secret-address"`)
	id := b.send("POST", "/v1/pushes?validate_only=false", body, "Idempotency-Key", "secret-idem").must(t, 201).at(t, "id").(string)
	b.send("GET", "/v1/pushes/"+id, "")
	b.send("GET", "/v1/recipients/secret-recipient/quota?category=secret-query", "")
	b.send("GET", "/secret-path", "")
	b.send("SECRETS", "/v1/pushes", "")
	b.send("GET", "/healthz", "")
	log := b.log.String()
	for _, want := range []string{
		`"method":"POST","route":"/v1/pushes","status":201,"duration_ms":`, `"route":"/v1/recipients/{id}/quota","status":200`,
		`"route":"unmatched","status":404`, `"method":"OTHER","route":"unmatched","status":405`, `"tenant":"` + b.tenant.String() + `","key":"` + b.keyID() + `"`, `"request_id":"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
	for _, secret := range []string{"secret", "SECRET", b.key, "Hello.", "healthz"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q:\n%s", secret, log)
		}
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

func TestHealth(t *testing.T) {
	fails := func(context.Context) error { return errors.New("down") }
	for _, c := range []struct {
		cfg                      health.Config
		status                   int
		overall, postgres, redis string
	}{
		{health.Config{}, 200, "ready", "ok", "ok"},
		{health.Config{Redis: fails}, 200, "degraded", "ok", "unreachable"},
		{health.Config{Postgres: fails}, 503, "unavailable", "unreachable", "ok"},
		{health.Config{Redis: fails, Stopping: func() bool { return true }}, 503, "stopping", "ok", "unreachable"},
	} {
		r := ask(t, New(nil, everything{}, Config{Health: health.New(c.cfg)}), "GET", "/readyz", "")
		if r.status != c.status || r.at(t, "status") != c.overall || r.at(t, "postgres") != c.postgres || r.at(t, "redis") != c.redis {
			t.Errorf("%d %s, want %+v", r.status, r.text, c)
		}
		if retry := r.header.Get("Retry-After"); (retry != "") != (c.status == 503) {
			t.Errorf("%d with Retry-After: %q", r.status, retry)
		}
	}
	h := New(nil, everything{}, Config{Metrics: http.NotFoundHandler(), Stopping: func() bool { return true }})
	for path, want := range map[string]int{"/healthz": 200, "/docs": 200, "/metrics": 404, "/v1/pushes": 401, "/nothing": 404} {
		if r := ask(t, h, "GET", path, ""); r.status != want || r.header.Get("Connection") != "close" {
			t.Errorf("%s answers %d with Connection: %q while stopping", path, r.status, r.header.Get("Connection"))
		}
	}
	h = New(nil, everything{}, Config{Metrics: http.NotFoundHandler()})
	if r := ask(t, h, "GET", "/healthz", ""); r.status != 200 || r.header.Get("Connection") != "" || r.text != "{\"status\":\"ok\"}\n" {
		t.Errorf("%d %q", r.status, r.text)
	}
	if r := ask(t, h, "GET", "/metrics", ""); r.status != 404 || r.text != "404 page not found\n" {
		t.Errorf("/metrics is not handed on: %s", r.text)
	}
}

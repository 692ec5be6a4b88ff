package httpapi

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestWebhooks goes the way of a tenant with its webhook.
func TestWebhooks(t *testing.T) {
	b := setup(t)

	// It is made, and shows its secret this once.
	created := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/hook?a=b","events":["push.sent","push.scheduled"]}`).must(t, 201)
	path, secret := created.header.Get("Location"), created.at(t, "secret").(string)
	id := created.at(t, "id").(string)
	if path != "/v1/webhooks/"+id || !strings.HasPrefix(secret, "whsec_") || len(secret) != 50 {
		t.Errorf("%s, secret %s", path, secret)
	}
	for name, want := range map[string]any{
		"url": "https://example.com/hook?a=b", "status": "enabled", "failures": 0.0, "disabled_at": nil, "failing_since": nil, "events": []any{"push.sent", "push.scheduled"},
	} {
		if diff := cmp.Diff(want, created.at(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	all := b.send("POST", "/v1/webhooks", `{"url":"http://example.com"}`).must(t, 201)
	if got := all.at(t, "events").([]any); len(got) != len(webhook.Events) {
		t.Errorf("all events are %v", got)
	}
	for _, r := range []reply{b.send("GET", path, ""), b.send("GET", "/v1/webhooks", "")} {
		if r.must(t, 200); strings.Contains(r.text, "secret") || !strings.Contains(r.text, id) {
			t.Errorf("%s", r.text)
		}
	}

	// The number is bounded.
	b.send("POST", "/v1/webhooks", `{"url":"https://example.com"}`).must(t, 201)
	b.send("POST", "/v1/webhooks", `{"url":"https://example.com"}`).must(t, 409, "too-many-webhooks")

	// Events have the push in the form of its own answer.
	p := b.send("POST", "/v1/pushes", pushBody("user-1", b.in(time.Hour), `,"category":"c","metadata":{"a":1.50}`)).must(t, 201)
	pushID := p.at(t, "id").(string)
	d := b.send("GET", path+"/deliveries", "").must(t, 200)
	if d.at(t, "deliveries", 0, "event") != "push.scheduled" || d.at(t, "deliveries", 0, "push_id") != pushID || d.at(t, "deliveries", 0, "status") != "waiting" ||
		d.at(t, "deliveries", 0, "last_status") != nil || d.at(t, "deliveries", 0, "ended_at") != nil || d.at(t, "next_page_token") != "" {
		t.Errorf("%s", d.text)
	}
	read := b.send("GET", "/v1/pushes/"+pushID, "").must(t, 200).body
	for _, private := range []string{"message", "sends"} {
		delete(read, private)
	}
	read["next_attempt_at"], read["last_error"], read["retry_of"] = nil, "", nil // absent there
	if diff := cmp.Diff(read, d.at(t, "deliveries", 0, "payload", "data")); diff != "" {
		t.Error(diff)
	}

	// A test, a page token, filters.
	b.send("POST", path+"/test", "").must(t, 202).at(t, "payload", "data", "webhook_id")
	first := b.send("GET", path+"/deliveries?page_size=1", "").must(t, 200)
	if first.at(t, "deliveries", 0, "event") != "webhook.test" || first.at(t, "deliveries", 0, "push_id") != nil {
		t.Errorf("%s", first.text)
	}
	token := first.at(t, "next_page_token").(string)
	second := b.send("GET", path+"/deliveries?page_size=1&page_token="+token, "").must(t, 200)
	if second.at(t, "deliveries", 0, "push_id") != pushID || second.at(t, "next_page_token") != "" {
		t.Errorf("%s", second.text)
	}
	b.send("GET", path+"/deliveries?event=push.sent&page_token="+token, "").must(t, 422, "invalid-request")
	b.send("GET", all.header.Get("Location")+"/deliveries?page_token="+token, "").must(t, 422, "invalid-request")
	for query, n := range map[string]int{"event=webhook.test": 1, "push=" + pushID: 1, "status=delivered": 0, "status=waiting&event=": 2} {
		if got := b.send("GET", path+"/deliveries?"+query, "").must(t, 200).at(t, "deliveries").([]any); len(got) != n {
			t.Errorf("%s: %d", query, len(got))
		}
	}

	// A replay, of one and of all that failed.
	one := second.at(t, "deliveries", 0, "id").(string)
	b.exec(`UPDATE webhook_deliveries SET status = 'failed', attempts = 11, ended_at = now(), last_status = 500, last_error = 'no' WHERE id = $1`, one)
	ended := b.send("GET", path+"/deliveries?status=failed", "").must(t, 200)
	if ended.at(t, "deliveries", 0, "last_status") != 500.0 || ended.at(t, "deliveries", 0, "next_attempt_at") != nil || ended.at(t, "deliveries", 0, "ended_at") == nil {
		t.Errorf("%s", ended.text)
	}
	if r := b.send("POST", path+"/replay", `{"since":"`+b.in(time.Hour)+`"}`).must(t, 202); r.at(t, "replayed") != 0.0 {
		t.Errorf("%s", r.text)
	}
	if r := b.send("POST", path+"/replay", `{"since":"`+b.in(-time.Hour)+`"}`).must(t, 202); r.at(t, "replayed") != 1.0 {
		t.Errorf("%s", r.text)
	}
	if r := b.send("POST", path+"/deliveries/"+one+"/replay", "{}").must(t, 202); r.at(t, "status") != "waiting" || r.at(t, "attempts") != 0.0 {
		t.Errorf("%s", r.text)
	}

	// A new secret; switched off and on.
	if r := b.send("POST", path+"/rotate-secret", "").must(t, 200); r.at(t, "secret") == secret {
		t.Errorf("%s", r.text)
	}
	b.exec(`UPDATE webhooks SET disabled_at = '2026-01-01Z', disabled_reason = 'no', failures = 5, failing_since = '2025-12-01Z' WHERE id = $1`, id)
	off := b.send("GET", path, "").must(t, 200)
	if off.at(t, "status") != "disabled" || off.at(t, "disabled_at") != "2026-01-01T00:00:00Z" || off.at(t, "disabled_reason") != "no" || off.at(t, "failing_since") != "2025-12-01T00:00:00Z" {
		t.Errorf("%s", off.text)
	}
	next := func() any {
		t.Helper()
		return b.send("GET", path+"/deliveries?status=waiting", "").must(t, 200).at(t, "deliveries", 0).(map[string]any)["next_attempt_at"]
	}
	if at := next(); at != nil {
		t.Errorf("while it is off, the next attempt is at %v", at)
	}
	for _, action := range []string{"/test", "/deliveries/" + one + "/replay"} {
		b.send("POST", path+action, "").must(t, 409, "webhook-disabled")
	}
	b.send("POST", path+"/replay", `{"since":"`+b.in(0)+`"}`).must(t, 409, "webhook-disabled")
	if on := b.send("POST", path+"/enable", "").must(t, 200); on.at(t, "status") != "enabled" || on.at(t, "failures") != 0.0 || next() == nil {
		t.Errorf("%s", on.text)
	}

	// It ends.
	if r := b.send("DELETE", path, "").must(t, 204); r.text != "" || r.header.Get("Content-Type") != "" {
		t.Errorf("%v %q", r.header, r.text)
	}
	b.send("DELETE", path, "").must(t, 404, "not-found")
	b.send("GET", path+"/deliveries", "").must(t, 404, "not-found")
	b.send("POST", "/v1/webhooks", `{"url":"https://example.com"}`).must(t, 201)
	if strings.Contains(b.log.String(), "whsec_") || strings.Contains(b.log.String(), "example.com") {
		t.Errorf("the log: %s", b.log.String())
	}
}

// TestWebhooks_OfOtherTenants: another tenant's webhook is not there, and a key needs the scope.
func TestWebhooks_OfOtherTenants(t *testing.T) {
	b := setup(t)
	path := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`).must(t, 201).header.Get("Location")
	delivery := b.send("POST", path+"/test", "").must(t, 202).at(t, "id").(string)
	_, narrow := b.newTenant("narrow", push.ScopeWrite, push.ScopeRead, push.ScopeQuota)
	since := `{"since":"2026-01-01T00:00:00Z"}`
	for _, c := range [][3]string{
		{"GET", path, ""}, {"POST", path + "/test", ""}, {"POST", path + "/enable", ""}, {"POST", path + "/rotate-secret", ""}, {"GET", path + "/deliveries", ""},
		{"POST", path + "/deliveries/" + delivery + "/replay", ""}, {"POST", path + "/replay", since}, {"DELETE", path, ""},
	} {
		r := b.send(c[0], c[1], c[2], "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
		if !strings.Contains(r.text, "the webhook") || !strings.Contains(r.text, "does not exist") {
			t.Errorf("%v: %s", c, r.text)
		}
		b.send(c[0], c[1], c[2], "Authorization", "Bearer "+narrow).must(t, 403, "forbidden")
	}
	mine := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`, "Authorization", "Bearer "+b.other).must(t, 201).header.Get("Location")
	b.send("POST", mine+"/deliveries/"+delivery+"/replay", "", "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
	if got := b.send("GET", "/v1/webhooks", "").must(t, 200).at(t, "webhooks").([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	b.send("GET", path, "").must(t, 200)
}

// TestWebhooks_FieldErrors: every fault at once, with its place, and nothing is made.
// TestWebhooks_SecretsSealed: a secret that was made over REST, or replaced, stands nowhere in the database, neither as text nor as bytes; nor
// does it in Redis or the log.
func TestWebhooks_SecretsSealed(t *testing.T) {
	b := setupAlone(t)
	created := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`).must(t, 201)
	rotated := b.send("POST", created.header.Get("Location")+"/rotate-secret", "").must(t, 200)
	b.send("POST", "/v1/pushes", pushBody("user-1", b.in(time.Hour), "")).must(t, 201)
	var marks []string
	for _, r := range []reply{created, rotated} {
		secret := r.at(t, "secret").(string)
		encoded := strings.TrimPrefix(secret, "whsec_")
		bytes, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, encoded, hex.EncodeToString([]byte(encoded)), hex.EncodeToString(bytes))
	}
	if n := query[int](b, `SELECT count(*) FROM webhooks WHERE secret <> '' AND old_secret <> ''`); n != 1 {
		t.Fatalf("%d webhooks with two secrets", n)
	}
	if found := tracesOf(t, b, marks...); len(found) > 0 {
		t.Errorf("in the clear: %v", found)
	}
	for _, mark := range marks {
		if strings.Contains(b.log.String(), mark) {
			t.Error("the log has a secret")
		}
	}
	b.exec(`UPDATE webhooks SET secret = convert_to($1, 'UTF8')`, marks[0]) // the search finds what is there
	if found := tracesOf(t, b, marks...); len(found) == 0 {
		t.Error("a secret in the clear is not found")
	}
}

// TestWebhooks_NoKey: without a key no secret is made that would stand in the clear; the answer names the setting.
func TestWebhooks_NoKey(t *testing.T) {
	b := setup(t)
	path := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`).must(t, 201).header.Get("Location")
	st, err := store.Open(t.Context(), b.url, store.Config{Timeout: patience, ReadTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	h := New(b.service(st, testPolicy()), st, Config{Now: b.now, RequestTimeout: patience, Webhooks: notify.NewWebhooks(st, notify.WebhooksConfig{MaxPerTenant: 20})})
	before := query[int](b, `SELECT count(*) FROM webhooks`)
	for _, target := range []string{"/v1/webhooks", path + "/rotate-secret"} {
		body := ""
		if target == "/v1/webhooks" {
			body = `{"url":"https://example.com/two"}`
		}
		r := ask(t, h, "POST", target, body, "Authorization", "Bearer "+b.key).must(t, 422, "not-configured")
		if !strings.Contains(r.text, "SENDQUOTA_SEAL_KEY") || strings.Contains(r.text, "whsec_") {
			t.Errorf("%s: %s", target, r.text)
		}
	}
	ask(t, h, "GET", path, "", "Authorization", "Bearer "+b.key).must(t, 200)
	if after := query[int](b, `SELECT count(*) FROM webhooks`); after != before {
		t.Errorf("%d webhooks, want %d", after, before)
	}
}

func TestWebhooks_FieldErrors(t *testing.T) {
	b := setup(t)
	path := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`).must(t, 201).header.Get("Location")
	const id = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 []string // locations and parts of the messages
	}{
		{"POST", "/v1/webhooks", ``, 400, []string{"body", "ends too early"}},
		{"POST", "/v1/webhooks", `[]`, 422, []string{"body", "must be an object"}},
		{"POST", "/v1/webhooks", `{}`, 422, []string{"body.url", "is required"}},
		{"POST", "/v1/webhooks?x=1", `{"url":"http://10.0.0.1/","events":["push.sent","push.opened",5,"push.sent"],"secret":"whsec_x","foo":1}`, 422, []string{
			"body.events[1]", "must be one of: push.scheduled", "body.events[2]", "must be a string", "body.events", "twice", "body.foo", "unexpected",
			"body.secret", "generated", "body.url", "public host; the address of this one is private", "query.x", "unexpected"}},
		{"POST", "/v1/webhooks", `{"url":5,"events":[]}`, 422, []string{"body.events", "must not be empty", "body.url", "must be a string"}},
		{"POST", "/v1/webhooks", `{"url":"https://u:p@example.com","events":null}`, 422, []string{"body.events", "must be an array", "body.url", "no user and password"}},
		{"POST", "/v1/webhooks", `{"url":"http://0x7f000001:8080/"}`, 422, []string{"body.url", "loopback"}},
		{"POST", "/v1/webhooks", `{"url":"http://[::ffff:169.254.169.254]/"}`, 422, []string{"body.url", "metadata"}},
		{"POST", "/v1/webhooks", `{"url":"gopher://example.com"}`, 422, []string{"body.url", "https:// or http://"}},
		{"POST", "/v1/webhooks", `{"url":"https://example.com/` + strings.Repeat("x", 2048) + `"}`, 422, []string{"body.url", "at most 2048 bytes"}},
		{"GET", "/v1/webhooks?a=b", ``, 422, []string{"query.a", "unexpected"}},
		{"GET", "/v1/webhooks/x?a=b", ``, 422, []string{"path.id", "UUID", "query.a", "unexpected"}},
		{"DELETE", "/v1/webhooks/x", `{"a":1}`, 422, []string{"body.a", "unexpected", "path.id", "UUID"}},
		{"POST", path + "/test", `{"event":"x"}`, 422, []string{"body.event", "unexpected"}},
		{"GET", path + "/deliveries?status=lost&event=x&push=y&page_size=0&page_token=z", ``, 422, []string{
			"query.event", "webhook.test", "query.page_size", "1 to 500", "query.push", "UUID", "query.status", "waiting, sending, delivered, failed"}},
		{"GET", path + "/deliveries?page_token=z", ``, 422, []string{"query.page_token", "not a token"}},
		{"POST", path + "/deliveries/x/replay", ``, 422, []string{"path.delivery", "UUID"}},
		{"POST", path + "/replay", `{}`, 422, []string{"body.since", "required"}},
		{"POST", path + "/replay", `{"since":"yesterday","until":1}`, 422, []string{"body.since", "must be a time", "body.until", "unexpected"}},
		{"POST", path + "/deliveries/" + id + "/replay", ``, 404, nil},
	} {
		r := b.send(c.method, c.target, c.body)
		if r.status != c.status {
			t.Errorf("%s %s %s: %d %s", c.method, c.target, c.body, r.status, r.text)
			continue
		}
		var got []string
		errs, _ := r.body["errors"].([]any)
		for _, e := range errs {
			m := e.(map[string]any)
			got = append(got, fmt.Sprint(m["location"], "|", m["message"]))
		}
		slices.Sort(got)
		ok := len(got) == len(c.want)/2
		for i := range got {
			location, message, _ := strings.Cut(got[i], "|")
			ok = ok && location == c.want[2*i] && strings.Contains(message, c.want[2*i+1])
		}
		if !ok {
			t.Errorf("%s %s %s: %q, want %q", c.method, c.target, c.body, got, c.want)
		}
	}
	if got := b.send("GET", "/v1/webhooks", "").must(t, 200).at(t, "webhooks").([]any); len(got) != 1 {
		t.Errorf("%d webhooks are there", len(got))
	}
}

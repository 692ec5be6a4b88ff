package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// routes lists every method and path that the router serves, with the ids of a path filled in.
func routes(t *testing.T, id string) (all [][2]string) {
	t.Helper()
	for _, r := range newTestAPI().Patterns() {
		all = append(all, [2]string{r.Method, regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(r.Pattern, id)})
	}
	if len(all) < 20 {
		t.Fatal(len(all))
	}
	return all
}

// TestAnswer_Hardened: every route, also as it fails, and what is no route, has the headers that keep browsers from
// doing anything with the answer.
func TestAnswer_Hardened(t *testing.T) {
	b := setup(t)
	const id = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	for _, r := range append(routes(t, id), [2]string{"GET", "/nothing"}, [2]string{"GET", "/v1"}, [2]string{"DELETE", "/v1/pushes"}, [2]string{"GET", "//evil.example/%2e%2e"}) {
		for _, key := range []string{b.key, ""} {
			got := b.send(r[0], r[1], "", "Authorization", map[bool]string{true: "Bearer " + key}[key != ""]).header
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Strict-Transport-Security": "", "Access-Control-Allow-Origin": "", "Server": "", "Set-Cookie": "",
				"Cache-Control": map[bool]string{true: "no-store"}[strings.HasPrefix(r[1], "/v1") || r[1] == "/docs/try"],
			} {
				if got.Get(name) != want {
					t.Errorf("%s %s: %s is %q, want %q", r[0], r[1], name, got.Get(name), want)
				}
			}
			policy := got.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'; frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("%s %s: Content-Security-Policy is %q", r[0], r[1], policy)
			}
			if len(got["Content-Security-Policy"]) != 1 || got.Get("X-Request-Id") == "" {
				t.Errorf("%s %s: %v", r[0], r[1], got)
			}
		}
	}
}

// TestDocsPage_Hardened: the reading page may show its own style, has no script, no inline style or handler, and takes
// nothing from elsewhere.
func TestDocsPage_Hardened(t *testing.T) {
	r := ask(t, newTestAPI(), "GET", "/docs", "").must(t, 200)
	if strings.Count(r.text, "<style") != 1 || !strings.Contains(r.header.Get("Content-Security-Policy"), "style-src 'sha256-") {
		t.Errorf("the style sheet: %s", r.header.Get("Content-Security-Policy"))
	}
	// The hash as a browser computes it, over what it really got.
	if want := styleHash(r.text); !strings.Contains(r.header.Get("Content-Security-Policy"), "style-src "+want+";") || want == styleHash("") {
		t.Errorf("the policy is %q, for the page it has %q", r.header.Get("Content-Security-Policy"), want)
	}
	for _, bad := range []string{`<script`, `\sstyle=`, `\son[a-z]+=`, `<(img|link|iframe|form|base)\b`, `(src|href)="?(https?:)?//`, `@import`, `url\(`} {
		if found := regexp.MustCompile(bad).FindString(r.text); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
}

// TestTenants_Isolated goes through every route under /v1 with another tenant's key, and the ids, recipients,
// tokens and keys of the first.
func TestTenants_Isolated(t *testing.T) {
	b := setup(t)
	due := b.in(time.Hour)
	mine := b.send("POST", "/v1/pushes", pushBody("anna-secret", due, `,"metadata":{"a":"meta-secret"}`), "Idempotency-Key", "k").must(t, 201)
	id := mine.at(t, "id").(string)
	b.send("POST", "/v1/pushes", pushBody("bert-secret", due, "")).must(t, 201)
	token := b.send("GET", "/v1/pushes?page_size=1", "").must(t, 200).at(t, "next_page_token").(string)

	hook := b.send("POST", "/v1/webhooks", `{"url":"https://example.com/secret-path"}`).must(t, 201).at(t, "id").(string)
	delivery := b.send("POST", "/v1/webhooks/"+hook+"/test", "").must(t, 202).at(t, "id").(string)

	change := b.send("PUT", "/v1/policy?apply=reslot", `{"rules":[{"name":"rule-secret-path","limit":1,"window":"1m"}]}`).must(t, 202).at(t, "operation").(string)
	schedule := b.send("POST", "/v1/schedules", `{"cron":"@daily","name":"name-secret","push":{"recipient":"anna-secret","message":{}}}`).must(t, 201).at(t, "id").(string)
	campaign := b.send("POST", "/v1/campaigns", `{"name":"name-secret","message":{"body":"body-secret"}}`).must(t, 201).at(t, "id").(string)

	person := b.send("POST", "/v1/users", `{"email":"name-secret@example.com","role":"viewer"}`).must(t, 201).at(t, "id").(string)
	bulk := b.send("POST", "/v1/bulk-changes", `{"action":"cancel","filter":{"category":"name-secret"}}`).must(t, 202).at(t, "id").(string)

	pause := b.send("POST", "/v1/pauses", `{"scope":"category","name":"name-secret","reason":"body-secret"}`).must(t, 201).at(t, "id").(string)
	b.send("PUT", "/v1/channels/name-secret", `{"type": "log"}`).must(t, 201)

	bodies := map[string]string{
		"POST /v1/pauses":                             `{"scope":"category","name":"mine"}`,
		"POST /v1/channels/name-secret/test":          `{"message":{}}`,
		"POST /v1/users":                              `{"email":"eve@example.com","role":"viewer"}`,
		"PATCH /v1/users/" + person:                   `{"name":"mine"}`,
		"PUT /v1/policy":                              `{}`,
		"POST /v1/pushes":                             pushBody("anna-secret", due, ""),
		"POST /v1/pushes/batch":                       `{"pushes":[` + pushBody("anna-secret", due, "") + `]}`,
		"POST /v1/quota/check":                        `{"recipient":"anna-secret","send_at":"` + due + `"}`,
		"POST /v1/limits/take":                        `{"key":"anna-secret","limits":[{"algorithm":"sliding_log","limit":1,"per":"1m"}]}`,
		"POST /v1/limits/refund":                      `{"key":"anna-secret","limits":[{"algorithm":"sliding_log","limit":1,"per":"1m"}]}`,
		"POST /v1/limits/reset":                       `{"key":"anna-secret","limits":[{"algorithm":"sliding_log","limit":1,"per":"1m"}]}`,
		"POST /v1/keys":                               `{"scopes":["pushes:read"]}`,
		"POST /v1/webhooks":                           `{"url":"https://example.com/other"}`,
		"POST /v1/webhooks/" + hook + "/replay":       `{"since":"` + b.in(-time.Hour) + `"}`,
		"POST /v1/schedules":                          `{"cron":"@daily","push":{"recipient":"anna-secret","message":{}}}`,
		"PATCH /v1/schedules/" + schedule:             `{"paused":true}`,
		"POST /v1/campaigns":                          `{"message":{}}`,
		"POST /v1/bulk-changes":                       `{"action":"cancel","filter":{"recipient":"anna-secret"}}`,
		"PATCH /v1/campaigns/" + campaign:             `{"name":"mine"}`,
		"PUT /v1/campaigns/" + campaign + "/audience": "recipient\nanna-secret\n",
		"PUT /v1/suppressions":                        `{"channel":"push","address":"mine"}`,
		"POST /v1/suppressions/import":                "channel,address\npush,mine\n",
		"POST /v1/recipients/import":                  "recipient,attribute.a\nanna-secret,mine\n",
		"PUT /v1/recipients/anna-secret":              `{"time_zone":"Asia/Tokyo"}`,
		"PATCH /v1/pushes/" + id:                      `{"send_at":"` + b.in(2*time.Hour) + `"}`,
	}
	tested := 0
	for _, r := range routes(t, id) {
		method, path := r[0], strings.Replace(r[1], "/v1/recipients/"+id, "/v1/recipients/anna-secret", 1)
		path = strings.Replace(path, "/v1/keys/"+id, "/v1/keys/"+b.keyID(), 1)
		path = strings.Replace(path, "/v1/users/"+id, "/v1/users/"+person, 1)
		path = strings.Replace(path, "/v1/webhooks/"+id, "/v1/webhooks/"+hook, 1)
		path = strings.Replace(path, "/v1/schedules/"+id, "/v1/schedules/"+schedule, 1)
		path = strings.Replace(path, "/v1/campaigns/"+id, "/v1/campaigns/"+campaign, 1)
		path = strings.Replace(path, "/v1/bulk-changes/"+id, "/v1/bulk-changes/"+bulk, 1)
		path = strings.Replace(path, "/v1/pauses/"+id, "/v1/pauses/"+pause, 1)
		path = strings.Replace(path, "/v1/channels/"+id, "/v1/channels/name-secret", 1)
		if method == "PUT" && path == "/v1/channels/name-secret" {
			continue // makes a channel of the other tenant's own
		}
		path = strings.Replace(path, "/deliveries/"+id, "/deliveries/"+delivery, 1)
		path = strings.Replace(path, "/v1/policy/operations/"+id, "/v1/policy/operations/"+change, 1)
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		tested++
		headers := []string{"Authorization", "Bearer " + b.other, "Idempotency-Key", "other-" + fmt.Sprint(tested)}
		if strings.HasSuffix(path, "/import") || strings.HasSuffix(path, "/audience") {
			headers = append(headers, "Content-Type", "text/csv")
		}
		if method == "DELETE" && path == "/v1/suppressions" {
			continue // it names an address in the query: TestSuppressions_Lifecycle
		}
		got := b.send(method, path, bodies[method+" "+path], headers...)
		if strings.HasPrefix(path, "/v1/pushes/"+id) || strings.HasPrefix(path, "/v1/keys/") || strings.HasPrefix(path, "/v1/users/") || strings.HasPrefix(path, "/v1/webhooks/"+hook) || strings.HasPrefix(path, "/v1/schedules/"+schedule) || strings.HasPrefix(path, "/v1/campaigns/"+campaign) || strings.HasPrefix(path, "/v1/bulk-changes/"+bulk) || strings.HasPrefix(path, "/v1/pauses/"+pause) || strings.HasPrefix(path, "/v1/channels/") || strings.HasSuffix(path, change) {
			if got.status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, path, got.status, got.text)
			}
		} else if path == "/v1/recipients/anna-secret" && got.status == http.StatusNotFound {
			continue // before the tenant describes its own
		} else if got.status/100 != 2 {
			t.Errorf("%s %s: %d %s", method, path, got.status, got.text) // the tenant's own view, which is empty or new
		}
		if strings.Contains(got.text, id) || strings.Contains(got.text, b.keyID()) || strings.Contains(got.text, person) || strings.Contains(got.text, hook) || strings.Contains(got.text, schedule) || strings.Contains(got.text, campaign) || strings.Contains(got.text, bulk) || strings.Contains(got.text, pause) || strings.Contains(got.text, "body-secret") || strings.Contains(got.text, change) || strings.Contains(got.text, "name-secret") || strings.Contains(got.text, "secret-path") || strings.Contains(got.text, "meta-secret") || strings.Contains(got.text, "bert-secret") {
			t.Errorf("%s %s shows another tenant's: %s", method, path, got.text)
		}
	}
	if tested < 12 {
		t.Errorf("%d routes only", tested)
	}

	// The other's bookings of the same name are no obstacle, and its tokens and keys its own.
	b.send("GET", "/v1/pushes?page_token="+token, "", "Authorization", "Bearer "+b.other).must(t, 422, "invalid-request")
	replay := b.send("POST", "/v1/pushes", pushBody("carl", due, ""), "Idempotency-Key", "k", "Authorization", "Bearer "+b.other).must(t, 201)
	if replay.at(t, "id") == id || replay.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the other tenant got %s", replay.text)
	}
	// And nothing was changed.
	if still := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); still.at(t, "status") != "scheduled" || still.at(t, "send_at") != due {
		t.Errorf("the push became %s", still.text)
	}
}

// TestRoutes_RequireKey: every route demands a key with its scope, whether or not anything else is right with the request.
func TestRoutes_RequireKey(t *testing.T) {
	b := setup(t)
	const id = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	_, none := b.newTenant("no scopes", "nothing:at-all")
	for _, r := range routes(t, id) {
		if !strings.HasPrefix(r[1], "/v1/") {
			continue
		}
		for authorization, want := range map[string]int{"": 401, "Bearer sq_guessed": 401, "Bearer " + none: 403} {
			if got := b.send(r[0], r[1], "", "Authorization", authorization).status; got != want {
				t.Errorf("%s %s: %d, want %d", r[0], r[1], got, want)
			}
		}
	}
	// A key can do no more than its scopes say, in whatever way it is asked.
	_, reader := b.newTenant("reader", push.ScopeRead)
	for _, headers := range [][]string{{"X-HTTP-Method-Override", "POST"}, {"X-Scopes", push.ScopeWrite}, {"X-Forwarded-For", "127.0.0.1"}} {
		r := b.send("POST", "/v1/pushes", pushBody("r", b.in(time.Hour), ""), append([]string{"Authorization", "Bearer " + reader}, headers...)...)
		if r.must(t, 403, "forbidden").at(t, "scope") != push.ScopeWrite {
			t.Errorf("%s", r.text)
		}
	}
}

// TestTexts_NoSQL: what looks like SQL is a text like any other, wherever a caller can put one.
func TestTexts_NoSQL(t *testing.T) {
	b := setup(t)
	for i, evil := range []string{`'; DROP TABLE pushes; --`, `' OR '1'='1`, `$1`, `%`, `_`, `\'; SELECT pg_sleep(9)--`, `") UNION SELECT hash FROM api_keys --`, `{"$gt":""}`} {
		text, err := json.Marshal(evil)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"recipient":` + string(text) + `,"category":` + string(text) + `,"to":` + string(text) + `,"message":{"body":` + string(text) + `},"send_at":"` + b.in(time.Hour) + `"}`
		id := b.send("POST", "/v1/pushes", body, "Idempotency-Key", evil).must(t, 201).at(t, "id").(string)
		got := b.send("GET", "/v1/pushes/"+id, "").must(t, 200)
		if got.at(t, "recipient") != evil || got.at(t, "category") != quota.Name(evil) || got.at(t, "to") != evil || got.at(t, "message", "body") != evil {
			t.Errorf("%q came back as %s", evil, got.text)
		}
		for _, filter := range []string{"recipient", "category"} {
			list := b.send("GET", "/v1/pushes?"+filter+"="+url.QueryEscape(evil), "").must(t, 200).at(t, "pushes").([]any)
			if len(list) != 1 || list[0].(map[string]any)["id"] != id {
				t.Errorf("%s=%q lists %d pushes", filter, evil, len(list))
			}
		}
		slots := b.send("GET", "/v1/recipients/"+url.PathEscape(evil)+"/slots", "").must(t, 200)
		if n := len(slots.at(t, "bookings").([]any)); n != 1 {
			t.Errorf("%q has %d bookings", evil, n)
		}
		for _, param := range []string{"status", "from", "page_size", "page_token", evil} {
			b.send("GET", "/v1/pushes?"+url.QueryEscape(param)+"="+url.QueryEscape(evil), "").must(t, 422, "invalid-request")
		}
		b.send("GET", "/v1/pushes/"+url.PathEscape(evil), "").must(t, 422, "invalid-request")
		b.send("GET", "/v1/pushes", "", "Authorization", "Bearer "+evil).must(t, 401, "unauthorized")
		if rows, _ := b.traces(); rows != i+1 {
			t.Fatalf("%d rows after %d pushes", rows, i+1)
		}
	}
}

// TestRequestLog_NotForged: whatever a caller writes anywhere, each line of the log is one object that we wrote.
func TestRequestLog_NotForged(t *testing.T) {
	b := setup(t)
	const evil = "x\r\n{\"level\":\"ERROR\",\"msg\":\"forged\"}\x1b[31m\u2028\x00"
	for _, r := range [][2]string{{"GET", "/v1/pushes"}, {evil, "/v1/pushes"}, {"GET", "/forged"}, {"POST", "/v1/pushes"}} {
		req := httptest.NewRequest("GET", r[1], strings.NewReader(evil))
		req.Method, req.URL.Path, req.URL.RawQuery, req.Host = r[0], r[1]+evil, evil, evil
		for _, name := range []string{"X-Request-Id", "User-Agent", "Idempotency-Key", "Referer", "X-Forwarded-For", "Content-Type"} {
			req.Header[name] = []string{evil}
		}
		req.Header.Set("Authorization", "Bearer "+b.key)
		b.api.ServeHTTP(httptest.NewRecorder(), req)
	}
	text := b.log.String()
	lines := 0
	for line := range strings.Lines(text) {
		lines++
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["msg"] != "request" {
			t.Errorf("%v: %q", err, line)
		}
	}
	if lines != 4 || strings.Contains(text, "forged") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
}

// styleHash returns the hash of the style sheet of a page, as a policy names it.
func styleHash(page string) string {
	_, after, _ := strings.Cut(page, "<style>")
	style, _, _ := strings.Cut(after, "</style>")
	hash := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

package channel

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// testNow is the clock of the channels under test.
func testNow() time.Time { return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC) }

// row is one answer of a provider, and what any channel must make of it.
type row struct {
	name     string
	behavior behavior // nil: hangs up without reading
	want     Result   // an Error of "…" stands for any text
	timeout  time.Duration
}

// mailAnswers maps the names of rows to the answer of a mail server that has the whole message. The other rows are for
// HTTP alone. The results are the same for all channels.
func mailAnswers() map[string]string {
	return map[string]string{
		"200":                      "250 2.0.0 Ok",
		"429":                      "450 4.7.1 slow down " + markMessage,
		"503 with zero":            "421 4.3.2 going away " + markMessage,
		"404":                      "550 5.7.1 no " + markMessage,
		"hangs":                    mailHangs,
		"hangs within the head":    "25" + mailHangs,
		"resets":                   mailResets,
		"drops":                    mailDrops,
		"echoes as status":         mailEchoes,
		"echoes as header":         "250-" + mailEchoes,
		"says nonsense":            "HTTP/1.1 400 Bad Request",
		"odd status":               "2500 Ok",
		"endless head":             strings.Repeat("250-"+strings.Repeat("x", 1000)+"\r\n", 100) + "250 Ok",
		"101":                      "354 go on",
		"hangs up without reading": mailDrops,
	}
}

func providerAnswers() []row {
	const long = time.Hour // who waits for that does not end
	var (
		delivered = Result{Outcome: push.Delivered}
		forGood   = Result{Outcome: push.Refused, Final: true, Error: "…"}
		refused   = Result{Outcome: push.Refused, Error: "…"}
		unknown   = Result{Outcome: push.Unknown, Error: "…"}
	)
	after := func(r Result, d time.Duration) Result { r.RetryAfter = d; return r }
	rows := []row{
		{"200 with a long body", answers(200, strings.Repeat("x", 10<<20)), delivered, long},
		{"200 with a body cut off", writes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":", false), delivered, long},
		{"200 with a broken chunk", writes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false), delivered, long},
		{"200 with a body that drips", drips, delivered, long},
		{"200 with a body that never comes", hangs("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), delivered, long},
		{"200 after 103", writes("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true), delivered, long},

		{"429 with seconds", answers(429, "", "Retry-After: 17"), after(refused, 17*time.Second), long},
		{"429 with a date", answers(429, "", "Retry-After: Tue, 01 Dec 2026 08:00:40 GMT"), after(refused, 40*time.Second), long},
		{"429 with a date gone by", answers(429, "", "Retry-After: Tue, 01 Dec 2026 07:00:00 GMT"), refused, long},
		{"429 for a year", answers(429, "", "Retry-After: 31536000"), after(refused, 365*24*time.Hour), long},
		{"429 for a year, as date", answers(429, "", "Retry-After: Wed, 01 Dec 2027 08:00:00 GMT"), after(refused, 365*24*time.Hour), long},
		{"429 for ever", answers(429, "", "Retry-After: 99999999999999999999999"), after(refused, 400*24*time.Hour), long},
		{"429 with nonsense", answers(429, "", "Retry-After: soon"), refused, long},
		{"429 with a negative wait", answers(429, "", "Retry-After: -5"), refused, long},
		{"408 with seconds", answers(408, "", "Retry-After: 3"), after(refused, 3*time.Second), long},
		{"503 with seconds", answers(503, "", "Retry-After: 3"), after(refused, 3*time.Second), long},
		{"503 with zero", answers(503, "", "Retry-After: 0"), refused, long},
		{"503 with nonsense", answers(503, "", "Retry-After: soon"), unknown, long},
		{"502 with seconds", answers(502, "", "Retry-After: 3"), unknown, long},
		{"404 with seconds", answers(404, "", "Retry-After: 3"), forGood, long},
		{"500 with a body that drips", hangs("HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n"), unknown, long},

		{"101", answers(101, "", "Connection: upgrade", "Upgrade: x"), unknown, long},
		{"hangs", hangs(""), unknown, brief},
		{"hangs within the head", hangs("HTTP/1.1 200 OK\r\nContent-"), unknown, brief},
		{"resets", resets, unknown, long},
		{"drops", drops, unknown, long},
		{"hangs up without reading", nil, unknown, long},
		{"echoes as status", echoes("HTTP/1.1 "), unknown, long},
		{"echoes as header", echoes("HTTP/1.1 200 OK\r\n"), unknown, long},
		{"says nonsense", writes("220 mail.example ESMTP\r\n", false), unknown, long},
		{"endless head", writes("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20), false), unknown, long},
		{"odd status", writes("HTTP/1.1 2000 OK\r\n\r\n", false), unknown, long},
	}
	for _, code := range []int{200, 201, 202, 204, 299} {
		rows = append(rows, row{fmt.Sprint(code), answers(code, ""), delivered, long})
	}
	for _, code := range []int{300, 301, 302, 303, 304, 307, 308} {
		rows = append(rows, row{fmt.Sprint(code), answers(code, "", "Location: /elsewhere"), forGood, long})
	}
	for _, code := range []int{400, 401, 403, 404, 409, 410, 413, 422, 451, 499} {
		rows = append(rows, row{fmt.Sprint(code), answers(code, markMessage), forGood, long})
	}
	for _, code := range []int{408, 425, 429} {
		rows = append(rows, row{fmt.Sprint(code), answers(code, markMessage), refused, long})
	}
	for _, code := range []int{500, 502, 503, 504, 599, 600, 999} {
		rows = append(rows, row{fmt.Sprint(code), answers(code, markMessage), unknown, long})
	}
	return rows
}

// TestChannels_Answers runs every channel through the answers that any provider may give.
func TestChannels_Answers(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range providerAnswers() {
				if s.mail && mailAnswers()[r.name] == "" {
					continue
				}
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					testAnswer(t, s, r)
				})
			}
		})
	}
}

func testAnswer(t *testing.T, s subject, r row) {
	channel, requests := s.start(t, r, testConnection(r.timeout))
	got := channel.Send(t.Context(), s.push(), 1)
	if s.coded { // permanent refusals have a code, and there is none
		r.want.Final = false
	}
	if other, ok := s.differs[r.name]; ok {
		r.want = other
	}
	if r.want.Error == "…" && got.Error != "" {
		r.want.Error = got.Error
	}
	if diff := cmp.Diff(r.want, got, notWhen); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if n := requests(); r.behavior != nil && n != 1 {
		t.Errorf("the provider got %d requests, want 1", n)
	}
	checkError(t, got.Error)
}

// checkError holds the text of an error to what the package promises.
func checkError(t *testing.T, text string) {
	t.Helper()
	if len(text) > maxError {
		t.Errorf("the error has %d bytes, want at most %d", len(text), maxError)
	}
	for _, mark := range marks() {
		if strings.Contains(text, mark) {
			t.Errorf("%s leaked: %s", mark, text)
		}
	}
}

// newTestWebhook fills in what tests on loopback need.
func newTestWebhook(t testing.TB, cfg WebhookConfig) *Webhook {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name, cfg.AllowPrivateAddresses = "push", true
	}
	if cfg.Secret == "" {
		cfg.Secret = markSecret
	}
	w, err := NewWebhook(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	return w
}

// The text for the tenant names the status of the answer.
func TestClassify_ErrorNamesStatus(t *testing.T) {
	for _, code := range []int{http.StatusFound, http.StatusTooManyRequests, http.StatusNotFound, http.StatusBadGateway, 599} {
		p := newProvider(t, answers(code, ""))
		got := newTestWebhook(t, WebhookConfig{URL: p.url()}).Send(t.Context(), testPush(), 1)
		if !strings.Contains(got.Error, fmt.Sprint(code)) {
			t.Errorf("error of a %d: %q", code, got.Error)
		}
	}
}

func TestProviderID(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"text", `{"id":"abc-1","more":[1]}`, "abc-1"},
		{"message_id", `{"message_id":"m-1"}`, "m-1"},
		{"id before message_id", `{"message_id":"m-1","id":"abc"}`, "abc"},
		{"an id of no use", `{"id":null,"message_id":"m-1"}`, "m-1"},
		{"empty id", `{"id":"","message_id":"m-1"}`, "m-1"},
		{"number", `{"id":12345}`, "12345"},
		{"number beyond a float", `{"id":12345678901234567891}`, "12345678901234567891"},
		{"negative", `{"id":-7}`, "-7"},
		{"object", `{"id":{"a":1}}`, ""},
		{"bool", `{"id":true}`, ""},
		{"control characters", `{"id":"a\u0000b\r\n\u001b[31mc\u0085\u202e"}`, "ab[31mc"},
		{"broken utf-8", "{\"id\":\"a\xff\"}", "a\ufffd"},
		{"long", `{"id":"` + strings.Repeat("x", 300) + `"}`, strings.Repeat("x", 255)},
		{"long, not within a character", `{"id":"` + strings.Repeat("ø", 300) + `"}`, strings.Repeat("ø", 127)},
		{"behind more than is read", `{"pad":"` + strings.Repeat("x", outbound.MaxAnswer) + `","id":"abc"}`, ""},
		{"array", `["id"]`, ""},
		{"not JSON", "queued", ""},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProvider(t, answers(202, tt.body))
			got := newTestWebhook(t, WebhookConfig{URL: p.url()}).Send(t.Context(), testPush(), 1)
			if diff := cmp.Diff(Result{Outcome: push.Delivered, ProviderMessageID: tt.want}, got, notWhen); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

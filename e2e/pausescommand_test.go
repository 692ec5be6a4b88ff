package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// pausesToolConfig has a channel that sends at once, and lets webhooks lead to the test.
const pausesToolConfig = `
policy: {rules: []}
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true}
webhooks: {allow_private_addresses: true}
`

// pauseEvent is an event about a pause as a webhook gets it.
type pauseEvent struct {
	Type      string
	Timestamp time.Time
	Data      object
}

// pauseEvents makes a webhook for the events about a tenant's pauses. The returned function lists what came.
func (b *bundle) pauseEvents() func() []pauseEvent {
	b.t.Helper()
	var (
		mu  sync.Mutex
		all []pauseEvent
	)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e pauseEvent
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		mu.Lock()
		defer mu.Unlock()
		if all = append(all, e); err != nil {
			b.t.Errorf("%s: %v", text, err)
		}
	}))
	b.t.Cleanup(server.Close)
	if status, a := b.call(http.MethodPost, "/v1/webhooks", object{"url": server.URL, "events": []string{"sending.paused", "sending.resumed"}}); status != http.StatusCreated {
		b.t.Fatalf("%d %v", status, a)
	}
	return func() []pauseEvent {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// paused lists what is paused for the tenant.
func (b *bundle) paused() []any {
	b.t.Helper()
	_, a := b.call(http.MethodGet, "/v1/pauses", nil)
	return a["pauses"].([]any)
}

// sends submits a push that is due, and returns a function that reads whether it is sent.
func (b *bundle) sends(recipient, category string, wantPaused bool) (sent func() bool) {
	b.t.Helper()
	status, p := b.call(http.MethodPost, "/v1/pushes", object{"recipient": recipient, "category": category, "message": object{}})
	if status != http.StatusCreated || p["paused"] != wantPaused {
		b.t.Fatalf("%d %v, want paused: %v", status, p, wantPaused)
	}
	return func() bool {
		_, a := b.call(http.MethodGet, "/v1/pushes/"+p["id"].(string), nil)
		return a["status"] == "sent"
	}
}

// TestPauses_CommandLine pauses and resumes one tenant and then all from the command line: what is paused waits, the rest is sent, tenants
// see the pauses in the API and get an event with all members for each begin and end, and cannot end the operator's.
func TestPauses_CommandLine(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: pausesToolConfig})
	b.StartAPI()
	other := b.tenant("other")
	events, others := b.pauseEvents(), other.pauseEvents()
	b.Start("worker")

	if out := b.Tool("pause", "--tenant", "acme", "--category", "news", "--reason", "wrong prices"); out != "paused category news of tenant acme; no attempt begins from two seconds on\n" {
		t.Errorf("pause: %q", out)
	}
	if out := b.Tool("pause", "--tenant", "acme", "--category", "news"); out != "category news of tenant acme is paused already\n" {
		t.Errorf("again: %q", out)
	}
	mine := b.paused()
	news, code, theirs := b.sends("anna", "news", true), b.sends("bert", "code", false), other.sends("anna", "news", false)
	b.until("the rest is sent", func() bool { return code() && theirs() })
	b.until("the push is parked", func() bool {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM live WHERE pause_id IS NOT NULL`) == 1
	})
	if news() || len(mine) != 1 || len(other.paused()) != 0 {
		t.Errorf("sent: %v, paused: %v and %v", news(), mine, other.paused())
	}
	b.Tool("resume", "--tenant", "acme", "--category", "news")
	b.until("it is sent after the end", news)
	if out := b.Tool("resume", "--tenant", "acme", "--category", "news"); out != "category news of tenant acme was not paused\n" {
		t.Errorf("resume again: %q", out)
	}

	b.Tool("pause", "--all-tenants", "--all", "--reason", "maintenance", "--until", "1h")
	everyones := b.paused()
	later := b.tenant("later") // it did not exist when the pause was made
	waiting := []func() bool{b.sends("a", "", true), other.sends("b", "code", true), later.sends("c", "news", true)}
	b.until("all are parked", func() bool {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM live WHERE pause_id IS NOT NULL`) == 3
	})
	for _, tenant := range []*bundle{b, other, later} {
		all := tenant.paused()
		if !reflect.DeepEqual(all, everyones) || len(all) != 1 || all[0].(object)["operator"] != true {
			t.Fatalf("a tenant sees %v", all)
		}
		if a, err := tenant.ask(http.MethodDelete, "/v1/pauses/"+all[0].(object)["id"].(string), nil); err != nil || a.status != http.StatusForbidden {
			t.Errorf("a tenant ends the operator's pause: %v, %v", a, err)
		}
	}
	b.Tool("resume", "--all-tenants", "--all")
	for _, sent := range waiting {
		b.until("all are sent", sent)
	}

	status, short := b.call(http.MethodPost, "/v1/pauses", object{"scope": "all", "until": time.Now().Add(time.Second).Format(time.RFC3339Nano)})
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, short)
	}
	b.until("all events are there", func() bool { return len(events()) >= 6 && len(others()) >= 2 })
	want := func(p any, endedBy string) object {
		of := object{}
		for k, v := range p.(object) {
			of[k] = v
		}
		if endedBy != "" {
			of["ended_by"] = endedBy
		}
		return of
	}
	for i, w := range []struct {
		kind string
		data object
	}{
		{"sending.paused", want(mine[0], "")}, {"sending.resumed", want(mine[0], "request")},
		{"sending.paused", want(everyones[0], "")}, {"sending.resumed", want(everyones[0], "request")},
		{"sending.paused", want(short, "")}, {"sending.resumed", want(short, "until")},
	} {
		got := pauseEvent{}
		for _, e := range events() {
			if e.Type == w.kind && e.Data["id"] == w.data["id"] {
				got = e
			}
		}
		if !reflect.DeepEqual(got.Data, w.data) || time.Since(got.Timestamp).Abs() > time.Hour {
			t.Errorf("event %d: %s %v, want %v", i, w.kind, got, w.data)
		}
	}
	for _, e := range others() {
		if e.Data["operator"] != true {
			t.Errorf("another tenant got %v", e)
		}
	}
	b.wantAudited()
}

// TestPauses_CommandLineErrors gives the tool what it must refuse: all errors of a command at once, each with its value.
func TestPauses_CommandLineErrors(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: pausesToolConfig})
	for _, row := range []struct {
		line   string
		status int
		says   []string
	}{
		{"pause", 2, []string{"expected --tenant or --all-tenants", "expected --all, --channel, --category or --campaign"}},
		{"pause --tenant acme --all-tenants --all", 2, []string{"--tenant", "--all-tenants"}},
		{"pause --tenant acme --all --channel push", 2, []string{"--all", "--channel"}},
		{"pause --all-tenants --campaign x --until yesterday --reason " + strings.Repeat("x", 501), 2, []string{"--campaign", "--until", "yesterday", "--reason", "501"}},
		{"pause --tenant acme --all --until 2020-01-01T00:00:00Z", 2, []string{`--until "2020-01-01T00:00:00Z"`, "in the future"}},
		{"pause --tenant acme --all --until -1h", 2, []string{"--until"}},
		{"pause --all-tenants --campaign 0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", 2, []string{"--campaign needs --tenant"}},
		{"pause --tenant unknown --all", 1, []string{`"unknown"`}},
		{"pause --tenant acme --campaign 0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", 1, []string{"no such campaign"}},
		{"pause --tenant acme --channel pish", 1, []string{`--channel "pish": unknown channel; the nearest name is push. The channels are: push`}},
		{"resume --tenant acme", 2, []string{"expected --all, --channel, --category or --campaign"}},
	} {
		got := b.Exec("sendquota", strings.Fields(row.line)...)
		if got.Status != row.status || got.Out != "" {
			t.Errorf("%s: %+v", row.line, got)
		}
		for _, part := range row.says {
			if !strings.Contains(got.Err, part) {
				t.Errorf("%s: %q does not say %q", row.line, got.Err, part)
			}
		}
	}
	if n := testenv.Query[int](t, b.Database, `SELECT count(*) FROM pauses`); n != 0 {
		t.Error(fmt.Sprint(n, " pauses were made"))
	}
}

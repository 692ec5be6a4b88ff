package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTenantChannels_SealedAnswers: while no key opens the secrets of a channel, its tenant sees its other settings and one sentence. The
// reason is in the log. A change that leaves the secrets out has one error for each.
func TestTenantChannels_SealedAnswers(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("mine", `, "secret": "MARKSECRET0123456789", "timeout": "3s"`)
	host := strings.TrimPrefix(b.own.url, "http://")
	if url := fmt.Sprint(b.ask("GET", "/v1/channels/mine", "")["url"]); !strings.Contains(url, "host:"+host) {
		t.Errorf("the URL is shown as %s", url)
	}
	testenv.Exec(t, string(b.app.cfg.DatabaseURL), `UPDATE tenant_channels SET secret = set_byte(secret, 60, get_byte(secret, 60) # 1)`)
	b.app.directory.Refresh(testenv.Query[[16]byte](t, string(b.app.cfg.DatabaseURL), `SELECT id FROM tenants WHERE name = 'acme'`))
	c := b.ask("GET", "/v1/channels/mine", "")
	url, _ := c["url"].(map[string]any)
	secret, _ := c["secret"].(map[string]any)
	const sentence = "its secrets cannot be opened; send them again, or ask the operator"
	if c["timeout"] != "3s" || url["set"] != true || secret["set"] != true || secret["set_at"] == "" || url["host"] != nil || c["problem"] != sentence {
		t.Errorf("the channel is shown as %v", c)
	}
	if list := b.text("GET", "/v1/channels", ""); !strings.Contains(list, `"problem":"`+sentence+`"`) || strings.Contains(list, "tenant_channels.secret") {
		t.Errorf("the list: %s", list)
	}
	if log := b.log.String(); !strings.Contains(log, "cannot open a tenant's channel") || !strings.Contains(log, "tenant_channels.secret") {
		t.Errorf("the log: %s", log)
	}
	p := b.ask("PUT", "/v1/channels/mine", `{"type": "webhook", "timeout": "4s"}`)
	if text := fmt.Sprint(p["errors"]); strings.Count(text, "location:body.url ") != 1 || strings.Count(text, "must be sent again") != 2 {
		t.Errorf("a change without the secrets: %v", p)
	}
}

// TestTenantChannels_OneFault: each wrong member has one error, null is an absent member, and a secret that another host would get is
// asked for.
func TestTenantChannels_OneFault(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	for body, want := range map[string]string{
		`{"type": "webhook", "url": "https://a.example", "url": "https://b.example"}`:                                 "[map[location:body.url message:is written twice",
		`{"type": "webhook", "url": "https://a.example", "throughput": {"rate": 1, "unit": "segment"}}`:               "[map[location:body.throughput.unit message:must be one of messages, segments",
		`{"type": "webhook", "url": "https://a.example", "throughput": {"rate": 1, "unit": "segments"}}`:              "[map[location:body.throughput.unit message:is not for type webhook",
		`{"type": "webhook", "url": "https://a.example", "throughput": {"rate": 1, "unit": null, "burst": null}}`:     "",
		`{"type": "webhook", "url": "https://a.example", "levels": {"urgent": null, "bulk": 20}, "backoff": null}`:    "",
		`{"type": "webhook", "url": "https://a.example", "throughput": {"rate": 1, "per": "1s", "unit": "messages"}}`: "",
	} {
		p := b.ask("PUT", "/v1/channels/mine", body)
		errors, _ := p["errors"].([]any)
		if text := fmt.Sprint(p["errors"]); want == "" && p["owner"] != "tenant" || want != "" && (len(errors) != 1 || !strings.HasPrefix(text, want)) {
			t.Errorf("%s: %v; want %s", body, p, want)
		}
	}
	mail := `"type": "email", "from": "a@example.com"`
	if c := b.ask("PUT", "/v1/channels/mail", `{`+mail+`, "host": "smtp.example.com", "username": "me", "password": "hush"}`); c["owner"] != "tenant" {
		t.Fatalf("%v", c)
	}
	p := b.ask("PUT", "/v1/channels/mail", `{`+mail+`, "host": "smtp.example.net"}`)
	if text := fmt.Sprint(p["errors"]); strings.Count(text, "the stored secret is not sent to another host: send it again") != 2 || !strings.Contains(text, "body.password") {
		t.Errorf("another host without the password: %v", p)
	}
	if c := b.ask("PUT", "/v1/channels/mail", `{`+mail+`, "host": "smtp.example.net", "username": null, "password": null}`); c["owner"] != "tenant" || c["password"] != nil {
		t.Errorf("another host that needs no password: %v", c)
	}
}

// TestTenantChannels_Leftovers: a deletion says which drafts and schedules name the channel. A channel of the operator is called that, and
// a test too many has the headers of a limit.
func TestTenantChannels_Leftovers(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("push", "")
	for _, name := range []string{"one", "two"} {
		if c := b.ask("POST", "/v1/campaigns", fmt.Sprintf(`{"name": %q, "channel": "push", "message": {"body": "x"}}`, name)); c["id"] == nil {
			t.Fatalf("a draft: %v", c)
		}
	}
	if s := b.ask("POST", "/v1/schedules", `{"name": "daily", "cron": "0 9 * * *", "push": {"recipient": "anna", "channel": "push", "message": {"body": "x"}}}`); s["id"] == nil {
		t.Fatalf("a schedule: %v", s)
	}
	for range 10 {
		b.ask("POST", "/v1/channels/push/test", `{"message": {"body": "x"}}`)
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.api+"/v1/channels/push/test", strings.NewReader(`{"message": {"body": "x"}}`))
	testenv.Check(t, err)
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	testenv.Check(t, err)
	defer answer.Body.Close()
	if h := answer.Header; answer.StatusCode != 429 || !strings.Contains(strings.Join(h["Ratelimit-Policy"], ","), `"channel-tests";q=10;w=3600`) || !strings.Contains(strings.Join(h["Ratelimit"], ","), `"channel-tests";r=0;t=`) {
		t.Errorf("the eleventh test: %d %v", answer.StatusCode, h)
	}
	if p := b.ask("DELETE", "/v1/channels/push", ""); p["canceled"] != 0.0 || p["drafts"] != 2.0 || p["schedules"] != 1.0 {
		t.Errorf("the deletion: %v", p)
	}
	for _, call := range [][2]string{{"DELETE", "/v1/channels/push"}, {"POST", "/v1/channels/push/test"}} {
		body := map[string]string{"POST": `{"message": {"body": "x"}}`}[call[0]]
		if p := b.ask(call[0], call[1], body); p["status"] != 404.0 || !strings.Contains(fmt.Sprint(p["detail"]), "it is the operator's") {
			t.Errorf("%s: %v", call, p)
		}
	}
	if p := b.ask("DELETE", "/v1/channels/limited", ""); p["status"] != 404.0 || p["detail"] != "the channel does not exist" {
		t.Errorf("a channel that is not offered: %v", p)
	}
}

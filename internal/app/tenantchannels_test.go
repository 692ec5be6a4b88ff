package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// receiver is a provider that takes every push, and remembers the bodies of the requests.
type receiver struct {
	url string
	mu  sync.Mutex
	got []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, string(body))
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// has reports whether a push of a recipient came.
func (r *receiver) has(recipient string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(strings.Join(r.got, "\n"), `"`+recipient+`"`)
}

// ownBundle is an API and a worker in one process, with two tenants.
type ownBundle struct {
	caller
	other    caller
	app      *App
	operator *receiver
	own      *receiver
	log      *testenv.Buffer
	stop     func()
}

func setupOwn(t *testing.T) *ownBundle {
	t.Helper()
	b := &ownBundle{operator: newReceiver(t), own: newReceiver(t), log: &testenv.Buffer{}}
	file := filepath.Join(t.TempDir(), "sendquota.yaml")
	text := fmt.Sprintf(`policy: {rules: [], categories: {news: {level: bulk}}}
http: {drain: 0s}
channels:
  push: {type: webhook, url: %[1]q, allow_private_addresses: true}
  limited: {type: webhook, url: %[1]q, allow_private_addresses: true, offered_to: [other]}
tenant_channels: {allow_private_addresses: true, max: 3}
`, b.operator.url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t), "SENDQUOTA_CONFIG=" + file, "SENDQUOTA_ADDR=127.0.0.1:0", "SENDQUOTA_SEAL_KEY=" + testenv.SealKey})
	testenv.Check(t, err)
	b.app, err = Open(t.Context(), cfg, slog.New(slog.NewJSONHandler(b.log, nil)))
	testenv.Check(t, err)
	ready, done := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { done <- b.app.RunBoth(ctx, ready) }()
	api := "http://" + <-ready
	b.stop = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		testenv.Check(t, b.app.Close())
	})
	t.Cleanup(b.stop)
	for name, to := range map[string]*caller{"acme": &b.caller, "other": &b.other} {
		tenant, _, err := b.app.store.CreateTenant(t.Context(), name)
		testenv.Check(t, err)
		_, key, err := b.app.store.CreateKey(t.Context(), apikey.NewKey{Tenant: tenant, Scopes: push.Scopes})
		testenv.Check(t, err)
		*to = caller{t, api, key}
	}
	return b
}

func (b *ownBundle) submit(c caller, channel, recipient string) string {
	b.t.Helper()
	id, _ := c.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": %q, "channel": %q, "message": {"body": "x"}}`, recipient, channel))["id"].(string)
	if id == "" {
		b.t.Fatalf("a push to %s is not accepted", channel)
	}
	return id
}

func (b *ownBundle) arrives(r *receiver, recipient string) {
	b.t.Helper()
	testenv.Until(b.t, 20*time.Millisecond, recipient+" gets the push", func() bool { return r.has(recipient) })
}

// put creates or replaces a channel of a tenant, to which the own receiver listens.
func (b *ownBundle) put(name, more string) map[string]any {
	b.t.Helper()
	answer := b.ask("PUT", "/v1/channels/"+name, fmt.Sprintf(`{"type": "webhook", "url": %q%s}`, b.own.url, more))
	if answer["owner"] != "tenant" {
		b.t.Fatalf("the channel is not stored: %v", answer)
	}
	return answer
}

// TestTenantChannels_Hide: a tenant's channel hides the operator's of its name, for that tenant alone, also while it is disabled. After its
// deletion, pushes go through the operator's again; those that waited are canceled.
func TestTenantChannels_Hide(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.submit(b.caller, "push", "before")
	b.arrives(b.operator, "before")

	b.put("push", `, "secret": "MARKSECRET0123456789"`)
	b.submit(b.caller, "push", "mine")
	b.submit(b.other, "push", "theirs")
	b.arrives(b.own, "mine")
	b.arrives(b.operator, "theirs")
	b.put("fresh", "")
	b.submit(b.caller, "fresh", "fresh")
	b.arrives(b.own, "fresh")

	b.put("push", `, "disabled": true`)
	waits := b.submit(b.caller, "push", "waits")
	b.submit(b.caller, "fresh", "later") // one that is claimed later arrives
	b.arrives(b.own, "later")
	if b.own.has("waits") || b.operator.has("waits") {
		t.Error("a disabled channel sends")
	}
	b.put("push", "")
	b.arrives(b.own, "waits")
	_ = waits

	b.put("push", `, "disabled": true`)
	doomed := b.submit(b.caller, "push", "doomed")
	if p := b.ask("DELETE", "/v1/channels/push", ""); p["type"] != "urn:sendquota:problem:channel-in-use" || p["pushes"] != 1.0 {
		t.Errorf("the deletion of a channel in use: %v", p)
	}
	if p := b.other.ask("DELETE", "/v1/channels/fresh", ""); p["status"] != 404.0 {
		t.Errorf("another tenant's channel: %v", p)
	}
	if p := b.ask("DELETE", "/v1/channels/push?pushes=cancel", ""); p["canceled"] != 1.0 {
		t.Errorf("the deletion cancels %v", p)
	}
	if p := b.ask("GET", "/v1/pushes/"+doomed, ""); p["status"] != "canceled" || p["last_error"] != "channel-deleted" {
		t.Errorf("a push of the deleted channel: %v", p)
	}
	b.submit(b.caller, "push", "again")
	b.arrives(b.operator, "again")
	for _, recipient := range []string{"mine", "waits", "doomed", "fresh", "later"} {
		if b.operator.has(recipient) {
			t.Errorf("%s got a push through the operator's channel", recipient)
		}
	}
}

// TestTenantChannels_Booked: pushes that were booked for the operator's channel go through the tenant's, which hides it now.
func TestTenantChannels_Booked(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	soon := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
	b.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": "early", "channel": "push", "send_at": %q, "message": {"body": "x"}}`, soon))
	b.put("push", "")
	b.arrives(b.own, "early")
	if b.operator.has("early") {
		t.Error("the operator's channel sent it, too")
	}
}

// TestTenantChannels_Answers: bad input is answered with every fault, secrets are masked, tests are limited, and an operator's channel is
// offered to some tenants only.
func TestTenantChannels_Answers(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	if p := b.ask("PUT", "/v1/channels/Bad!", `{"type": "smss", "tpye": 1}`); p["status"] != 422.0 || !strings.Contains(fmt.Sprint(p), "did you mean sms?") || !strings.Contains(fmt.Sprint(p), "path.name") {
		t.Errorf("bad input: %v", p)
	}
	b.put("privy", `, "secret": "MARKSECRET0123456789"`)
	c := b.ask("GET", "/v1/channels/privy", "")
	if mask, _ := c["secret"].(map[string]any); mask["set"] != true || mask["set_at"] == "" || c["max_attempts"] != 8.0 {
		t.Errorf("a channel is shown as %v", c)
	}
	if p := b.ask("PUT", "/v1/channels/privy", `{"type": "webhook", "secret": {"set": true}}`); !strings.Contains(fmt.Sprint(p), "is masked: leave the member out") {
		t.Errorf("a mask is answered with %v", p)
	}
	for range 10 {
		if r := b.ask("POST", "/v1/channels/privy/test", `{"to": "", "message": {"body": "x"}}`); r["outcome"] != "delivered" {
			t.Fatalf("a test: %v", r)
		}
	}
	if p := b.ask("POST", "/v1/channels/privy/test", `{"message": {"body": "x"}}`); p["status"] != 429.0 {
		t.Errorf("the eleventh test: %v", p)
	}
	if log := b.text("GET", "/v1/audit-log?action=channel.test", ""); strings.Count(log, `"channel.test"`) != 10 || strings.Count(log, "delivered") != 10 {
		t.Errorf("the audit log of the tests: %s", log)
	}
	if p := b.ask("POST", "/v1/pushes", `{"recipient": "a", "channel": "limited", "message": {"body": "x"}}`); p["status"] != 422.0 {
		t.Errorf("a channel that is not offered: %v", p)
	}
	b.submit(b.other, "limited", "offered")
	b.put("second", "")
	b.put("third", "")
	if p := b.ask("PUT", "/v1/channels/fourth", fmt.Sprintf(`{"type": "webhook", "url": %q}`, b.own.url)); p["type"] != "urn:sendquota:problem:too-many-channels" {
		t.Errorf("one channel too many: %v", p)
	}
	for _, name := range []string{"push", "none", "limited"} { // a test goes through no channel of the operator
		if p := b.ask("POST", "/v1/channels/"+name+"/test", `{"message": {"body": "FREE"}}`); p["status"] != 404.0 {
			t.Errorf("a test of %s: %v", name, p)
		}
	}
	list := b.text("GET", "/v1/channels", "")
	if strings.Count(list, `"owner":"tenant"`) != 3 || strings.Contains(list, "limited") {
		t.Errorf("the list: %s", list)
	}
	metrics := b.text("GET", "/metrics", "")
	b.stop()
	for where, text := range map[string]string{"the log": b.log.String(), "the metrics": metrics, "answers": fmt.Sprint(c) + list} {
		if strings.Contains(text, "MARKSECRET") {
			t.Errorf("a secret is in %s", where)
		}
	}
	if id := uuid.NewString(); strings.Contains(metrics, id) || strings.Contains(metrics, "privy") {
		t.Error("the metrics name a tenant's channel")
	}
}

// TestTenantChannels_TypeChanged: a channel whose type changes keeps no secret, and a push that was booked for it before and does not fit
// any more is refused permanently, with the reason. It goes nowhere.
func TestTenantChannels_TypeChanged(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("push", `, "secret": "MARKSECRET0123456789", "disabled": true`)
	id := b.submit(b.caller, "push", "booked")
	if p := b.ask("PUT", "/v1/channels/push", `{"type": "sms", "from": "+4512345678"}`); p["status"] != 422.0 || !strings.Contains(fmt.Sprint(p), "account_sid") {
		t.Errorf("another type without its secrets: %v", p)
	}
	c := b.ask("PUT", "/v1/channels/push", fmt.Sprintf(`{"type": "sms", "account_sid": "AC1", "auth_token": "hush", "from": "+4512345678", "base_url": %q}`, b.own.url))
	if c["type"] != "sms" || c["secret"] != nil || c["url"] != nil {
		t.Errorf("a channel of another type: %v", c)
	}
	if reason := b.failure(id); !strings.Contains(reason, "must be a telephone number") {
		t.Errorf("the push has failed because of %q", reason)
	}
	if b.own.has("booked") || b.operator.has("booked") {
		t.Error("the push went out")
	}
	if log := b.text("GET", "/v1/audit-log?action=channel.change", ""); !strings.Contains(log, `"type":{"to":"sms","from":"webhook"}`) || strings.Contains(log, "hush") {
		t.Errorf("the audit log: %s", log)
	}
}

// TestTenantChannels_CampaignInProgress: a channel is not deleted while a campaign in progress has more recipients, because those would get
// it through the operator's channel. Its pushes stay, even if the deletion may cancel pushes.
func TestTenantChannels_CampaignInProgress(t *testing.T) {
	t.Parallel()
	b := setupOwn(t)
	b.put("push", `, "disabled": true`)
	waits := b.submit(b.caller, "push", "waits")
	testenv.Exec(t, string(b.app.cfg.DatabaseURL), `INSERT INTO campaigns (id, tenant_id, name, channel, message, status, audience, booked)
		SELECT gen_random_uuid(), id, 'news', 'push', '{}', 'paused', 5, 3 FROM tenants WHERE name = 'acme'`)
	for _, query := range []string{"", "?pushes=cancel"} {
		p := b.ask("DELETE", "/v1/channels/push"+query, "")
		if detail, _ := p["detail"].(string); p["type"] != "urn:sendquota:problem:channel-in-use" || p["pushes"] != 1.0 || p["campaigns"] != 1.0 || !strings.Contains(detail, "cancel these campaigns first") {
			t.Errorf("the deletion%s is answered with %v", query, p)
		}
	}
	if p := b.ask("GET", "/v1/pushes/"+waits, ""); p["status"] != "scheduled" {
		t.Errorf("a push of the channel: %v", p)
	}
	testenv.Exec(t, string(b.app.cfg.DatabaseURL), `UPDATE campaigns SET booked = 5`)
	if p := b.ask("DELETE", "/v1/channels/push?pushes=cancel", ""); p["canceled"] != 1.0 {
		t.Errorf("without such a campaign, the deletion is answered with %v", p)
	}
}

package console

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/httpapi/records"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
)

// ownSet has the channels of tenants beside two channels of the operator.
type ownSet struct {
	*ownchannels.Service
	directory *ownchannels.Directory
	bounds    config.TenantChannels
}

func ownChannels(t testing.TB, st *store.Store) ownSet {
	t.Helper()
	out := channel.NewLog(slog.New(slog.DiscardHandler))
	operator, err := channel.NewSet(channel.Entry{Name: "push", Channel: out, Retry: push.Retry{MaxAttempts: 1}}, channel.Entry{Name: "sms", Channel: out, Retry: push.Retry{MaxAttempts: 1}})
	testenv.Check(t, err)
	bounds := config.TenantChannels{Max: 4, Types: []string{"webhook", "sms", "email", "fcm", "apns"}, AllowPrivateAddresses: true}
	bounds.Checks = config.ChannelChecks{AppleKey: channel.AppleKeyFault, GoogleCredentials: channel.GoogleCredentialsFault, Host: func(host string) string {
		fault, _ := outbound.HostFault(host)
		return fault
	}}
	open := func(c config.Channel) (channel.Entry, error) {
		e := channel.Entry{Name: c.Name, Channel: out}
		if c.Type == config.Webhook {
			var err error
			e.Channel, err = channel.NewWebhook(channel.WebhookConfig{Connection: channel.Connection{Name: c.Name, Timeout: c.Timeout, AllowPrivateAddresses: true}, URL: string(c.Webhook.URL)})
			return e, err
		}
		return e, nil
	}
	directory := ownchannels.NewDirectory(operator, nil, st, open, bounds, time.Minute, slog.New(slog.DiscardHandler))
	return ownSet{ownchannels.NewService(st, directory, ownchannels.ServiceConfig{Bounds: bounds, Lease: time.Minute}), directory, bounds}
}

// listed lists the channels as the API does.
func (s ownSet) listed(st *store.Store) records.Channels {
	list := []records.Channel{{Name: "push", Type: "webhook", Rate: 90, Per: time.Minute}, {Name: "sms", Type: "sms"}}
	return records.Channels{List: list, Store: st, Own: records.TenantChannels{Max: s.bounds.Max, Types: s.bounds.Types, AllowPrivateAddresses: true}, Of: func(tenant uuid.UUID) (all []records.Channel) {
		for _, c := range s.directory.List(tenant) {
			i := slices.IndexFunc(list, func(l records.Channel) bool { return l.Name == c.Name })
			one := records.Channel{Name: c.Name, Type: c.Settings.Type, Own: true}
			one.Problem, _ = s.directory.Problem(tenant, c.Name)
			if !c.Own {
				one = list[i]
			}
			all = append(all, one)
		}
		return all
	}}
}

// taker is a provider of webhooks that remembers the requests.
type taker struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newTaker(t *testing.T, status int) *taker {
	one := &taker{}
	one.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		one.mu.Lock()
		one.got = append(one.got, string(body))
		one.mu.Unlock()
		w.WriteHeader(status)
	}))
	t.Cleanup(one.Close)
	return one
}

const (
	canarySecret = "CANARY-secret-0123456789"
	ownPage      = "/console/settings/channels/own/"
	newPage      = "/console/settings/channels/new"
)

// settings returns the stored members of a channel.
func (b *bundle) settings(name string) client.ChannelSettings {
	b.t.Helper()
	all, err := b.api.Channels.Get(b.t.Context(), name)
	testenv.Check(b.t, err)
	return all
}

// TestChannels_Life: a channel is made with every error at its field, tested, edited without its secrets, disabled and enabled, and deleted
// with what is booked for it.
func TestChannels_Life(t *testing.T) {
	t.Parallel()
	b, to := setup(t), newTaker(t, 200)
	b.get("/console/settings/channels").has(t, 200, "New channel", "operator")
	b.get(newPage).has(t, 200, "Choose what the channel sends", `<option value="apns">Apple Push`)
	form := b.get(newPage + "?type=webhook")
	form.has(t, 200, `name="url"`, `placeholder="https://push.example.com/send"`, "Required. The URL to post to, http or https.", `name="throughput.rate" type="number" min="1"`, `placeholder="10s"`, "Default: 10s.", `<option selected>retry</option>`)
	form.lacks(t, `name="account_sid"`, `name="throughput.unit"`, `name="disabled"`)
	bad := b.post(newPage, "type", "webhook", "name", "Bad name", "url", "ftp://"+canarySecret, "secret", canarySecret[:9], "timeout", "soon", "max_attempts", "many", "throughput.per", "1m", "levels.urgent", "0")
	bad.has(t, 422, `id="fault-name"`, `id="fault-url"`, `id="fault-secret"`, `id="fault-timeout"`, `id="fault-max_attempts"`, `id="fault-throughput.rate"`, `id="fault-levels.urgent"`,
		`value="Bad name"`, `value="soon"`, `value="many"`, `value="1m"`, "<details open><summary>Speed", "Type it again", "Check 7 fields")
	bad.lacks(t, "CANARY")

	made := b.follow(b.post(newPage, "type", "webhook", "name", "mine", "url", to.URL+"/"+canarySecret, "secret", canarySecret, "max_attempts", "3", "allow_private_addresses", "on"))
	made.has(t, 200, "Channel created", "Set on", "Leave empty to keep it", `name="max_attempts" type="number" min="1" max="100" value="3"`, "YOUR_URL")
	made.lacks(t, "CANARY", `name="remove.url"`)
	made.has(t, 200, `name="remove.secret"`)
	b.post(newPage, "type", "webhook", "name", "mine", "url", to.URL, "allow_private_addresses", "on").has(t, 422, "is the name of a channel that you have already")
	b.post(newPage, "type", "webhook", "name", "mine", "url", "", "timeout", "soon").has(t, 422, "is the name of a channel that you have already", `id="fault-url"`, `id="fault-timeout"`, "Check 3 fields")

	tested := b.post(ownPage+"mine", "do", "test", "message.title", "Hello", "message.body", "World")
	tested.has(t, 200, "status-delivered", "9 tests left in this hour")
	tested.lacks(t, "CANARY")
	if len(to.got) != 1 || !strings.Contains(to.got[0], "World") {
		t.Errorf("the provider got %q", to.got)
	}
	b.post(ownPage+"mine", "do", "test", "message", "{").has(t, 422, `id="fault-message"`)

	at := hidden(t, b.get(ownPage+"mine"), "updated_at")
	b.follow(b.post(ownPage+"mine", "do", "save", "updated_at", at, "timeout", "3s", "throughput.rate", "5", "allow_private_addresses", "on")).has(t, 200, "Channel saved", `value="3s"`)
	now := b.settings("mine")
	if mask, _ := now["secret"].(map[string]any); now["timeout"] != "3s" || now["max_attempts"] != 8.0 || mask["set"] != true || fmt.Sprint(now["throughput"]) != "map[burst:1 per:1s rate:5 unit:messages]" {
		t.Errorf("an edited channel is %v", now)
	}
	b.post(ownPage+"mine", "do", "save", "updated_at", at, "timeout", "4s").has(t, 412, "Another user changed this channel", `value="4s"`)
	at = hidden(t, b.get(ownPage+"mine"), "updated_at")
	b.follow(b.post(ownPage+"mine", "do", "save", "updated_at", at, "remove.secret", "on", "allow_private_addresses", "on")).has(t, 200, "Channel saved")
	if now = b.settings("mine"); now["secret"] != nil || now["url"] == nil {
		t.Errorf("after the removal of a secret: %v", now)
	}

	before := b.settings("mine")
	b.follow(b.post(ownPage+"mine", "do", "disable")).has(t, 200, "It is disabled. Its messages wait", "status-disabled")
	b.get("/console/settings/channels").has(t, 200, "It is disabled. Its messages wait")
	if now = b.settings("mine"); now["disabled"] != true {
		t.Errorf("a disabled channel: %v", now)
	}
	b.follow(b.post(ownPage+"mine", "do", "enable")).has(t, 200, "Channel enabled", "status-enabled")
	now = b.settings("mine")
	for _, c := range []client.ChannelSettings{now, before} {
		delete(c, "updated_at")
	}
	if is, was := fmt.Sprint(now), fmt.Sprint(before); is != was {
		t.Errorf("a channel that was disabled and enabled was %s, and is %s", was, is)
	}
	b.get("/console/proof/log").has(t, 200, "made a channel", "tested a channel", "changed a channel", ownPage+"mine")
	b.get("/console/proof/log").lacks(t, "CANARY")
	if strings.Contains(b.log.String(), "CANARY") {
		t.Error("the log has a secret")
	}
	b.follow(b.post(ownPage+"mine", "do", "delete")).has(t, 200, "Channel deleted.")
	b.get(ownPage+"mine").has(t, 404)
}

// TestChannels_DeletedInUse: the deletion of a channel with scheduled messages asks whether to cancel them.
func TestChannels_DeletedInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.get(ownPage+"push").has(t, 404, "The operator made this channel")
	b.follow(b.post(newPage, "type", "webhook", "name", "push", "url", "https://push.example.com/", "allow_private_addresses", "on")).has(t, 200, "Channel created")
	one := b.submit("anna", time.Hour)
	b.submit("bob", time.Hour)
	b.post(ownPage+"push", "do", "delete").has(t, 200, "2 messages are scheduled for this channel.", "Cancel 2 messages and delete the channel", "Keep the channel")
	if now, err := b.api.Pushes.Get(t.Context(), one.ID); err != nil || now.Status != client.PushStatusScheduled {
		t.Errorf("after the question: %v %v", now.Status, err)
	}
	b.follow(b.post(ownPage+"push", "do", "cancel")).has(t, 200, "Channel deleted, and 2 messages canceled.")
	b.get("/console/proof/log").has(t, 200, "deleted a channel")
}

// TestChannels_Roles: only roles with the right are offered forms, and others see neither secrets nor texts, which may be addresses.
func TestChannels_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.api.Channels.Put(t.Context(), "mail", client.ChannelSettings{
		"type": "email", "host": "smtp.example.com", "from": "Anna <anna@example.com>", "reply_to": "bob@example.com", "username": canarySecret, "password": canarySecret, "timeout": "7s", "allow_private_addresses": false,
	})
	testenv.Check(t, err)
	b.get(ownPage+"mail").has(t, 200, "anna@example.com", "bob@example.com", "Subject", "E-mail address").lacks(t, "CANARY")
	for _, role := range []user.Role{user.Sender, user.Editor, user.Viewer} {
		b.who.Caller.Scopes, b.who.Role, b.who.Caller.Masked = role.Scopes(), string(role), role.Masked()
		b.get("/console/settings/channels").has(t, 200, "settings of mail").lacks(t, "New channel")
		b.get(ownPage+"mail").has(t, 200, "E-mail (SMTP)", "<dt>Timeout</dt><dd>7s</dd>").lacks(t, "anna@", "bob@", "CANARY", "smtp.example.com", "Set on", `name="do"`, "Send a test", "Delete channel")
		b.get(newPage).has(t, 403, "cannot do this; admins can")
		b.post(newPage, "type", "webhook", "name", "x", "url", "https://example.com").has(t, 403)
		b.post(ownPage+"mail", "do", "delete").has(t, 403)
	}
	if _, err := b.api.Channels.Get(t.Context(), "mail"); err != nil {
		t.Error(err)
	}
}

// TestChannels_Unchanged: a channel that is opened and saved is what it was, whatever it has.
func TestChannels_Unchanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, document := range []string{
		`{"type":"webhook","url":"https://a.example.com/x","secret":"0123456789abcdef","previous_secret":"0123456789abcdef0","backoff":{"first":"1s","max":"2h"},"levels":{"urgent":1,"normal":2,"bulk":3},"on_unknown":"fail"}`,
		`{"type":"sms","account_sid":"AC1","api_key_sid":"SK1","api_key_secret":"x","messaging_service_sid":"MG1","throughput":{"rate":10,"per":"1m","burst":3,"unit":"segments"},"allow_private_addresses":false}`,
		`{"type":"email","host":"smtp.example.com","port":465,"tls":"tls","from":"a@example.com","disabled":true,"message_id_domain":"example.com"}`,
	} {
		var put client.ChannelSettings
		testenv.Check(t, json.Unmarshal([]byte(document), &put))
		_, err := b.api.Channels.Put(t.Context(), "same", put)
		testenv.Check(t, err)
		before := b.settings("same")
		page := b.get(ownPage + "same")
		_, form, _ := strings.Cut(page.Body, "<h2>Settings</h2>")
		b.follow(b.post(ownPage+"same", append(filledIn(reply{Body: form}), "do", "save")...)).has(t, 200, "Channel saved")
		after := b.settings("same")
		delete(before, "updated_at")
		delete(after, "updated_at")
		if is, was := fmt.Sprint(after), fmt.Sprint(before); is != was {
			t.Errorf("a channel was\n%s, and is after a save without a change\n%s", was, is)
		}
	}
}

// TestChannels_Lists: a setting that is a list has a line for each element, with the line of an error.
func TestChannels_Lists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bad := b.post(newPage, "type", "email", "name", "mail", "host", "mail.example.com", "from", "a@example.com", "allowed_from", "B <b@example.com>\r\nx", "allow_private_addresses", "on")
	bad.has(t, 422, `id="fault-allowed_from"`, "line 2: must be one e-mail address", "B <b@example.com>", "x</textarea>")
	made := b.follow(b.post(newPage, "type", "email", "name", "mail", "host", "mail.example.com", "from", "a@example.com", "allowed_from", "B <b@example.com>\r\nc@example.com", "allow_private_addresses", "on"))
	made.has(t, 200, "Channel created", "B <b@example.com>", "c@example.com</textarea>")
}

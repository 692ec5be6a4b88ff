package notify

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

func TestMain(m *testing.M) {
	testenv.Overlap(4)
	testenv.Main(m)
}

// bundle is a store with a tenant and its webhooks, and the log and the metrics of a notifier.
type bundle struct {
	*store.Store
	t        *testing.T
	url      string // of the database
	webhooks *Webhooks
	tenant   uuid.UUID
	log      testenv.Buffer
	outcomes counter
}

// stores serializes the tests, because notifiers process all tenants.
var stores testenv.Stores

func setup(t *testing.T) *bundle {
	t.Helper()
	url, st := stores.Take(t)
	b := &bundle{Store: st, t: t, url: url, webhooks: NewWebhooks(st, WebhooksConfig{MaxPerTenant: 10, AllowPrivateAddresses: true})}
	b.tenant = b.newTenant("acme")
	return b
}

func (b *bundle) newTenant(name string) uuid.UUID {
	b.t.Helper()
	id, _, err := b.CreateTenant(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// hook creates a webhook for all events.
func (b *bundle) hook(tenant uuid.UUID, url string) (webhook.Webhook, string) {
	b.t.Helper()
	hook, secret, err := b.webhooks.Create(b.t.Context(), tenant, url, webhook.Events)
	if err != nil {
		b.t.Fatal(err)
	}
	return hook, secret
}

// quick returns a notifier's configuration with short pauses.
func quick() Config {
	ms := time.Millisecond
	return Config{Timeout: 5 * time.Second, AllowPrivateAddresses: true, DisableAfter: time.Hour, Backoff: []time.Duration{ms, ms, ms, ms, ms, ms, ms, ms, ms, ms, ms, ms}}
}

// run runs a notifier until the test ends, or until it is stopped.
func (b *bundle) run(box outbox, cfg Config) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := New(box, slog.New(slog.NewJSONHandler(&b.log, nil)), &b.outcomes, time.Now, cfg)
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

// book books a push that is due at once.
func (b *bundle) book(tenant uuid.UUID, recipient string) push.Push {
	b.t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	v, err := b.Book(b.t.Context(), booking.Order{Drafts: []booking.Draft{{Push: push.Push{
		Content: push.Content{Recipient: recipient, Channel: "log", Message: json.RawMessage(`{}`)},
		ID:      push.NewID(now, push.RecipientKey(tenant, recipient)), Tenant: tenant, SendAt: now, RequestedSendAt: now, TTL: time.Hour,
	}}}})
	if err != nil || v[0].Outcome != booking.Booked {
		b.t.Fatalf("%+v, %v", v, err)
	}
	return v[0].Push
}

// send claims and finishes a push.
func (b *bundle) send(p push.Push) {
	b.t.Helper()
	c, err := b.Claim(b.t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(p.Tenant, p.Recipient), Lease: time.Minute})
	if err != nil || c.Outcome != booking.Claimed {
		b.t.Fatalf("%+v, %v", c, err)
	}
	_, err = b.Finish(b.t.Context(), booking.Finish{Attempt: c.Attempted(), Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// only returns the webhook's only delivery.
func (b *bundle) only(hook webhook.Webhook) webhook.Delivery {
	b.t.Helper()
	d, err := b.Deliveries(b.t.Context(), hook.Tenant, hook.ID, webhook.DeliveryFilter{}, 0, 2)
	if err != nil || len(d.Deliveries) != 1 {
		b.t.Fatalf("%+v, %v", d, err)
	}
	return d.Deliveries[0]
}

// eventually waits for a fact.
func (b *bundle) eventually(what string, fact func() bool) {
	b.t.Helper()
	testenv.UntilWhole(b.t, 5*time.Millisecond, func() string {
		if fact() {
			return ""
		}
		return what + "\n" + b.log.String()
	})
}

// delivery is a request that an endpoint got.
type delivery struct {
	id     string
	event  string
	about  string // the push
	header http.Header
	body   []byte
	status int // of the answer
}

// endpoint records its requests, and answers them by a function.
type endpoint struct {
	*httptest.Server
	mu  sync.Mutex
	got []delivery
}

func newEndpoint(t *testing.T, answer func(http.ResponseWriter, delivery, int) (status int)) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var event struct {
			Type string
			Data struct {
				ID string
			}
		}
		_ = json.Unmarshal(body, &event)
		d := delivery{id: r.Header.Get("Webhook-Id"), event: event.Type, about: event.Data.ID, header: r.Header, body: body}
		e.mu.Lock()
		earlier := 0
		for _, one := range e.got {
			if one.id == d.id {
				earlier++
			}
		}
		e.mu.Unlock()
		d.status = answer(rw, d, earlier)
		e.mu.Lock()
		e.got = append(e.got, d)
		e.mu.Unlock()
		if d.status > 0 {
			rw.WriteHeader(d.status)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// always answers with a status.
func always(status int) func(http.ResponseWriter, delivery, int) int {
	return func(http.ResponseWriter, delivery, int) int { return status }
}

func (e *endpoint) requests() []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]delivery(nil), e.got...)
}

// accepted returns the events that were answered with 200, by push.
func (e *endpoint) accepted() map[string][]string {
	events := map[string][]string{}
	for _, d := range e.requests() {
		if d.status == 200 {
			events[d.about] = append(events[d.about], d.event)
		}
	}
	return events
}

// counter counts outcomes.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) Notified(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[outcome]++
}

func (c *counter) of(outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[outcome]
}

package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/webhooks"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestNotifier_Order: events of two workers arrive in order at an endpoint that fails every other request in one way or
// another. Each is signed, and retried under its own id.
func TestNotifier_Order(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int64
	e := newEndpoint(t, func(rw http.ResponseWriter, _ delivery, earlier int) int {
		if earlier > 2 {
			return 200
		}
		switch calls.Add(1) % 5 {
		case 0:
			return 500
		case 1:
			return 302
		case 2:
			conn, _, _ := http.NewResponseController(rw).Hijack()
			conn.Close()
			return -1
		}
		return 200
	})
	_, secret := b.hook(b.tenant, e.URL+"/hook?a=b")
	cfg := quick()
	cfg.Backoff = slices.Repeat([]time.Duration{time.Millisecond}, 100)
	b.run(b.Store, cfg)
	b.run(b.Store, cfg)
	const pushes = 30
	for i := range pushes {
		b.send(b.book(b.tenant, fmt.Sprint(i)))
	}
	b.eventually("all events are there", func() bool {
		n := 0
		for _, events := range e.accepted() {
			n += len(events)
		}
		return n == 2*pushes && b.outcomes.of("delivered") == 2*pushes
	})
	for id, events := range e.accepted() {
		if !slices.Equal(events, []string{"push.scheduled", "push.sent"}) {
			t.Errorf("%s: events %v", id, events)
		}
	}
	ids := map[string]string{}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range e.requests() {
		if err := verifier.Verify(d.body, d.header); err != nil {
			t.Errorf("%v: %v", err, d.header)
		}
		if what := d.about + d.event; ids[d.id] != "" && ids[d.id] != what {
			t.Errorf("one id for %s and %s", ids[d.id], what)
		}
		ids[d.id] = d.about + d.event
	}
	if len(ids) != 2*pushes || b.outcomes.of("failed") == 0 {
		t.Errorf("%d ids, %d failures", len(ids), b.outcomes.of("failed"))
	}
}

// TestNotifier_BothSecretsSign: while a secret is being replaced, both sign.
func TestNotifier_BothSecretsSign(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(200))
	hook, old := b.hook(b.tenant, e.URL)
	_, fresh, err := b.webhooks.Rotate(t.Context(), b.tenant, hook.ID)
	if err != nil || fresh == old {
		t.Fatal(fresh, err)
	}
	b.run(b.Store, quick())
	b.book(b.tenant, "a")
	b.eventually("it is delivered", func() bool { return len(e.requests()) == 1 })
	d := e.requests()[0]
	for _, secret := range []string{old, fresh} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(d.body, d.header); err != nil {
			t.Error(err)
		}
	}
}

// TestNotifier_SlowEndpoint: endpoints that never answer do not delay the deliveries to one that does.
func TestNotifier_SlowEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	release := make(chan struct{})
	hangs := newEndpoint(t, func(http.ResponseWriter, delivery, int) int { <-release; return 200 })
	defer close(release)
	for range 5 {
		b.hook(b.tenant, hangs.URL)
	}
	other := b.newTenant("other")
	e := newEndpoint(t, always(200))
	b.hook(other, e.URL)
	cfg := quick()
	cfg.Timeout = time.Minute
	for i := range 40 {
		b.book(b.tenant, fmt.Sprint(i))
	}
	b.run(b.Store, cfg)
	for i := range 40 {
		b.send(b.book(other, fmt.Sprint(i)))
	}
	b.eventually("the other gets everything", func() bool { return b.outcomes.of("delivered") == 80 })
	if n := len(hangs.requests()); n != 0 {
		t.Errorf("%d answers of an endpoint that hangs", n)
	}
	busy := testenv.Query[int](t, b.url, `SELECT max(n) FROM (SELECT count(*) AS n FROM webhook_deliveries WHERE status = 'sending' GROUP BY webhook_id) n`)
	if busy != perWebhook {
		t.Errorf("%d at once, want %d", busy, perWebhook)
	}
}

// TestNotifier_Disables: an endpoint that fails for long is disabled, and the log reports it without its URL.
func TestNotifier_Disables(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(503))
	hook, secret := b.hook(b.tenant, e.URL+"/hidden-path")
	cfg := quick()
	cfg.DisableAfter = time.Millisecond
	b.run(b.Store, cfg)
	b.book(b.tenant, "a")
	off := func() webhook.Webhook {
		got, err := b.Webhook(t.Context(), b.tenant, hook.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	b.eventually("it is off", func() bool { return !off().DisabledAt.IsZero() })
	if n := len(e.requests()); n != leastFailures || !strings.Contains(off().DisabledReason, "10 attempts in a row have failed, since ") {
		t.Errorf("after %d attempts: %s", n, off().DisabledReason)
	}
	b.eventually("it is logged", func() bool { return strings.Contains(b.log.String(), "webhook disabled") })
	log := b.log.String()
	if !strings.Contains(log, hook.ID.String()) || strings.Contains(log, "hidden-path") || strings.Contains(log, secret) {
		t.Errorf("the log: %s", log)
	}
}

// TestNotifier_Unsigned: an event that cannot be signed is not sent, but retried, and the log names the webhook.
func TestNotifier_Unsigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(200))
	hook, secret := b.hook(b.tenant, e.URL)
	sealed := testenv.Query[[]byte](t, b.url, `SELECT secret FROM webhooks WHERE id = $1`, hook.ID)
	testenv.Exec(t, b.url, fmt.Sprintf(`UPDATE webhooks SET secret = set_byte(secret, 40, get_byte(secret, 40) # 1) WHERE id = '%s'`, hook.ID))
	cfg := quick()
	cfg.Backoff = slices.Repeat(cfg.Backoff, 10_000) // it is not given up
	b.run(b.Store, cfg)
	b.book(b.tenant, "a")
	b.eventually("it fails", func() bool { return strings.Contains(b.only(hook).LastError, "the request could not be signed") })
	b.eventually("it is logged", func() bool { return strings.Contains(b.log.String(), "could not sign webhook event") })
	if log := b.log.String(); !strings.Contains(log, hook.ID.String()) || strings.Contains(log, secret) || len(e.requests()) > 0 {
		t.Errorf("%d requests; the log: %s", len(e.requests()), log)
	}
	testenv.Exec(t, b.url, fmt.Sprintf(`UPDATE webhooks SET secret = '\x%x' WHERE id = '%s'`, sealed, hook.ID))
	b.eventually("it is delivered", func() bool { return len(e.requests()) > 0 })
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.requests()[0]; verifier.Verify(got.body, got.header) != nil {
		t.Errorf("the signature of %v", got.header)
	}
}

// TestNotifier_Gone: an endpoint that answers 410 gets no more requests.
func TestNotifier_Gone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(410))
	hook, _ := b.hook(b.tenant, e.URL)
	b.run(b.Store, quick())
	b.book(b.tenant, "a")
	b.eventually("it is given up", func() bool { return b.outcomes.of("given_up") == 1 })
	got, err := b.Webhook(t.Context(), b.tenant, hook.ID)
	if err != nil || got.DisabledReason != "the endpoint answered 410 Gone" || len(e.requests()) != 1 {
		t.Errorf("%+v, %v, %d requests", got, err, len(e.requests()))
	}
	if d := b.only(hook); d.Status != webhook.Failed || d.LastStatus != 410 || d.LastError != "the endpoint answered 410 Gone" {
		t.Errorf("%+v", d)
	}
}

// TestNotifier_GivesUp: an event is given up after the last pause of the list.
func TestNotifier_GivesUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(400))
	hook, _ := b.hook(b.tenant, e.URL)
	cfg := quick()
	cfg.Backoff = cfg.Backoff[:3]
	b.run(b.Store, cfg)
	b.book(b.tenant, "a")
	b.eventually("it is given up", func() bool { return b.outcomes.of("given_up") == 1 })
	if d := b.only(hook); len(e.requests()) != 4 || d.Attempts != 4 || b.outcomes.of("failed") != 3 {
		t.Errorf("%d requests, %+v", len(e.requests()), d)
	}
}

// TestNotifier_PrivateAddresses: no request reaches a private address, by name or number, unless that is allowed.
func TestNotifier_PrivateAddresses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(200))
	port := e.URL[strings.LastIndex(e.URL, ":"):]
	cfg := quick()
	cfg.AllowPrivateAddresses, cfg.Backoff = false, []time.Duration{}
	b.run(b.Store, cfg)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f.1"} {
		hook, _ := b.hook(b.tenant, "http://"+host+port)
		if _, err := b.webhooks.Test(t.Context(), b.tenant, hook.ID); err != nil {
			t.Fatal(err)
		}
		b.eventually(host+" is given up", func() bool { return b.only(hook).Status == webhook.Failed })
		if d := b.only(hook); d.LastStatus != 0 || !strings.HasPrefix(d.LastError, "no connection: ") || host != "0x7f.1" && d.LastError != "no connection: the host has no public address" {
			t.Errorf("%s: %+v", host, d)
		}
	}
	if n := len(e.requests()); n != 0 {
		t.Errorf("%d requests reached a private address", n)
	}
}

// TestNotifier_KeepsOnlyStatus: of an answer only the status is kept, because it may come from a service that tenants
// must not read.
func TestNotifier_KeepsOnlyStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	elsewhere := newEndpoint(t, always(200))
	e := newEndpoint(t, func(rw http.ResponseWriter, _ delivery, _ int) int {
		rw.Header().Set("Location", elsewhere.URL)
		rw.Header().Set("X-Inner", "inner words")
		return 307
	})
	hook, _ := b.hook(b.tenant, e.URL)
	cfg := quick()
	cfg.Backoff = []time.Duration{}
	b.run(b.Store, cfg)
	b.book(b.tenant, "a")
	b.eventually("it is given up", func() bool { return b.outcomes.of("given_up") == 1 })
	if d := b.only(hook); d.LastError != "the endpoint answered 307 Temporary Redirect; redirects are not followed" {
		t.Errorf("%+v", d)
	}
	if len(elsewhere.requests()) > 0 || strings.Contains(b.log.String(), "inner words") {
		t.Errorf("a redirect was followed, or an answer was logged: %s", b.log.String())
	}
}

// forgetful loses the first results of attempts, as a worker that dies does.
type forgetful struct {
	*store.Store
	losses atomic.Int32
}

func (f *forgetful) SettleDeliveries(ctx context.Context, s []webhooks.Settlement, off webhooks.DisableLimits) ([]webhook.Webhook, error) {
	if f.losses.Add(-1) >= 0 {
		return nil, errors.New("killed")
	}
	return f.Store.SettleDeliveries(ctx, s, off)
}

// TestNotifier_LostSettlement: a delivery whose result was not recorded is sent again when its lease expires, under the
// same id.
func TestNotifier_LostSettlement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(200))
	hook, _ := b.hook(b.tenant, e.URL)
	box := &forgetful{Store: b.Store}
	box.losses.Store(1)
	b.run(box, quick())
	b.send(b.book(b.tenant, "a"))
	b.eventually("the first settlement is lost", func() bool { return box.losses.Load() <= 0 })
	testenv.Exec(t, b.url, `UPDATE webhook_deliveries SET next_at = clock_timestamp() WHERE event = 'push.scheduled' AND status = 'sending'`) // its lease has expired
	b.eventually("both are delivered", func() bool { return b.outcomes.of("delivered") == 2 })
	var told []string
	for _, d := range e.requests() {
		told = append(told, d.event)
	}
	if !slices.Equal(told, []string{"push.scheduled", "push.scheduled", "push.sent"}) || e.requests()[0].id != e.requests()[1].id {
		t.Errorf("told %v", told)
	}
	if d, err := b.Deliveries(t.Context(), hook.Tenant, hook.ID, webhook.DeliveryFilter{}, 0, 10); err != nil || d.Deliveries[1].Attempts != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestNotifier_Stops: a notifier that stops finishes and records the attempts in progress, and starts no others.
func TestNotifier_Stops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	e := newEndpoint(t, func(http.ResponseWriter, delivery, int) int {
		begun <- struct{}{}
		<-release
		return 200
	})
	b.hook(b.tenant, e.URL)
	stop := b.run(b.Store, quick())
	b.send(b.book(b.tenant, "a"))
	<-begun
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("it stopped in the middle of an attempt")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	<-stopped
	if b.outcomes.of("delivered") != 1 || len(e.requests()) != 1 {
		t.Errorf("%d delivered, %d requests", b.outcomes.of("delivered"), len(e.requests()))
	}
}

// TestNotifier_HeldUp: a worker that was held up sends nothing, because its lease may have expired, and another worker
// may have the delivery.
func TestNotifier_HeldUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(200))
	n := New(b.Store, nil, &b.outcomes, time.Now, quick())
	defer n.client.Close()
	hook, secret := b.hook(b.tenant, e.URL)
	n.deliver(t.Context(), webhooks.Outgoing{Webhook: hook.ID, Attempt: 1, URL: e.URL, Secret: secret, Payload: []byte(`{}`)}, time.Now().Add(-2*n.cfg.Timeout))
	if len(e.requests()) != 0 || b.outcomes.of("failed") != 1 {
		t.Errorf("%d requests, %d failures", len(e.requests()), b.outcomes.of("failed"))
	}
}

// TestNotifier_PostgresAway: no event is lost while the outbox cannot be reached.
func TestNotifier_PostgresAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEndpoint(t, always(200))
	b.hook(b.tenant, e.URL)
	box := &unreachable{Store: b.Store}
	box.down.Store(true)
	b.run(box, quick())
	b.book(b.tenant, "a")
	b.eventually("the log complains", func() bool { return strings.Contains(b.log.String(), "send webhook events failed") })
	box.down.Store(false)
	b.eventually("it is delivered", func() bool { return b.outcomes.of("delivered") == 1 })
}

// unreachable is a store that can be cut off.
type unreachable struct {
	*store.Store
	down atomic.Bool
}

func (u *unreachable) ClaimDeliveries(ctx context.Context, o webhooks.ClaimLimits) ([]webhooks.Outgoing, bool, error) {
	if u.down.Load() {
		return nil, false, errors.New("down")
	}
	return u.Store.ClaimDeliveries(ctx, o)
}

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

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestEventsArriveInOrder with two workers, at an endpoint that fails every
// other time in one way or another. Each is signed, and comes again under its
// own id.
func TestEventsArriveInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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
	_, secret := w.hook(w.tenant, e.URL+"/hook?a=b")
	cfg := quick()
	cfg.Backoff = slices.Repeat([]time.Duration{time.Millisecond}, 100)
	w.run(w.Store, cfg)
	w.run(w.Store, cfg)
	const pushes = 30
	for i := range pushes {
		w.send(w.book(w.tenant, fmt.Sprint(i)))
	}
	w.eventually("all events are there", func() bool {
		n := 0
		for _, events := range e.accepted() {
			n += len(events)
		}
		return n == 2*pushes && w.outcomes.of("delivered") == 2*pushes
	})
	for id, events := range e.accepted() {
		if !slices.Equal(events, []string{"push.scheduled", "push.sent"}) {
			t.Errorf("%s was told %v", id, events)
		}
	}
	ids := map[string]string{}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range e.seen() {
		if err := verifier.Verify(d.body, d.header); err != nil {
			t.Errorf("%v: %v", err, d.header)
		}
		if what := d.about + d.event; ids[d.id] != "" && ids[d.id] != what {
			t.Errorf("one id for %s and %s", ids[d.id], what)
		}
		ids[d.id] = d.about + d.event
	}
	if len(ids) != 2*pushes || w.outcomes.of("failed") == 0 {
		t.Errorf("%d ids, %d failures", len(ids), w.outcomes.of("failed"))
	}
}

// TestBothSecretsSignDuringRotation, each as one of the signatures.
func TestBothSecretsSignDuringRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(200))
	hook, old := w.hook(w.tenant, e.URL)
	_, fresh, err := w.webhooks.Rotate(t.Context(), w.tenant, hook.ID)
	if err != nil || fresh == old {
		t.Fatal(fresh, err)
	}
	w.run(w.Store, quick())
	w.book(w.tenant, "a")
	w.eventually("it was told", func() bool { return len(e.seen()) == 1 })
	d := e.seen()[0]
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

// TestASlowEndpointHoldsNobodyUp: endpoints that never answer take none of the
// turns of one that does.
func TestASlowEndpointHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	hangs := newEndpoint(t, func(http.ResponseWriter, delivery, int) int { <-release; return 200 })
	defer close(release)
	for range 5 {
		w.hook(w.tenant, hangs.URL)
	}
	other := w.newTenant("other")
	e := newEndpoint(t, always(200))
	w.hook(other, e.URL)
	cfg := quick()
	cfg.Timeout = time.Minute
	for i := range 40 {
		w.book(w.tenant, fmt.Sprint(i))
	}
	w.run(w.Store, cfg)
	for i := range 40 {
		w.send(w.book(other, fmt.Sprint(i)))
	}
	w.eventually("the other is told everything", func() bool { return w.outcomes.of("delivered") == 80 })
	if n := len(hangs.seen()); n != 0 {
		t.Errorf("%d answers of an endpoint that hangs", n)
	}
	busy := 0
	if err := w.db.QueryRow(t.Context(), `SELECT max(n) FROM (SELECT count(*) AS n FROM webhook_deliveries WHERE status = 'sending' GROUP BY webhook_id) n`).Scan(&busy); err != nil || busy != perWebhook {
		t.Errorf("%d at once, want %d (%v)", busy, perWebhook, err)
	}
}

// TestFailingForLongSwitchesOff, and leaves a line in the log, without the URL.
func TestFailingForLongSwitchesOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(503))
	hook, secret := w.hook(w.tenant, e.URL+"/hidden-path")
	cfg := quick()
	cfg.DisableAfter = time.Millisecond
	w.run(w.Store, cfg)
	w.book(w.tenant, "a")
	off := func() push.Webhook {
		got, err := w.webhooks.Get(t.Context(), w.tenant, hook.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	w.eventually("it is off", func() bool { return !off().DisabledAt.IsZero() })
	if n := len(e.seen()); n != leastFailures || !strings.Contains(off().DisabledReason, "10 attempts in a row have failed, since ") {
		t.Errorf("after %d attempts: %s", n, off().DisabledReason)
	}
	w.eventually("the log says so", func() bool { return strings.Contains(w.log.String(), "webhook switched off") })
	log := w.log.String()
	if !strings.Contains(log, hook.ID.String()) || strings.Contains(log, "hidden-path") || strings.Contains(log, secret) {
		t.Errorf("the log: %s", log)
	}
}

// TestGone: whoever answers 410 is not asked again.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(410))
	hook, _ := w.hook(w.tenant, e.URL)
	w.run(w.Store, quick())
	w.book(w.tenant, "a")
	w.eventually("it is given up", func() bool { return w.outcomes.of("given_up") == 1 })
	got, err := w.webhooks.Get(t.Context(), w.tenant, hook.ID)
	if err != nil || got.DisabledReason != "the endpoint answered 410 Gone" || len(e.seen()) != 1 {
		t.Errorf("%+v, %v, %d requests", got, err, len(e.seen()))
	}
	if d := w.only(hook); d.Status != push.DeliveryFailed || d.LastStatus != 410 || d.LastError != "the endpoint answered 410 Gone" {
		t.Errorf("%+v", d)
	}
}

// TestGivingUp after the last pause of the list.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(400))
	hook, _ := w.hook(w.tenant, e.URL)
	cfg := quick()
	cfg.Backoff = cfg.Backoff[:3]
	w.run(w.Store, cfg)
	w.book(w.tenant, "a")
	w.eventually("it is given up", func() bool { return w.outcomes.of("given_up") == 1 })
	if d := w.only(hook); len(e.seen()) != 4 || d.Attempts != 4 || w.outcomes.of("failed") != 3 {
		t.Errorf("%d requests, %+v", len(e.seen()), d)
	}
}

// TestNoPrivateAddressIsReached, named or written, unless it is allowed.
func TestNoPrivateAddressIsReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(200))
	port := e.URL[strings.LastIndex(e.URL, ":"):]
	cfg := quick()
	cfg.AllowPrivateAddresses, cfg.Backoff = false, []time.Duration{}
	w.run(w.Store, cfg)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f.1"} {
		hook, _ := w.hook(w.tenant, "http://"+host+port)
		if _, err := w.webhooks.Test(t.Context(), w.tenant, hook.ID); err != nil {
			t.Fatal(err)
		}
		w.eventually(host+" is given up", func() bool { return w.only(hook).Status == push.DeliveryFailed })
		if d := w.only(hook); d.LastStatus != 0 || !strings.HasPrefix(d.LastError, "no connection: ") || host != "0x7f.1" && d.LastError != "no connection: the host has no public address" {
			t.Errorf("%s: %+v", host, d)
		}
	}
	if n := len(e.seen()); n != 0 {
		t.Errorf("%d requests reached a private address", n)
	}
}

// TestNothingButTheStatusIsKept of an answer: it may come from a service that
// was never meant to be read.
func TestNothingButTheStatusIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := newEndpoint(t, always(200))
	e := newEndpoint(t, func(rw http.ResponseWriter, _ delivery, _ int) int {
		rw.Header().Set("Location", elsewhere.URL)
		rw.Header().Set("X-Inner", "inner words")
		return 307
	})
	hook, _ := w.hook(w.tenant, e.URL)
	cfg := quick()
	cfg.Backoff = []time.Duration{}
	w.run(w.Store, cfg)
	w.book(w.tenant, "a")
	w.eventually("it is given up", func() bool { return w.outcomes.of("given_up") == 1 })
	if d := w.only(hook); d.LastError != "the endpoint answered 307 Temporary Redirect; redirects are not followed" {
		t.Errorf("%+v", d)
	}
	if len(elsewhere.seen()) > 0 || strings.Contains(w.log.String(), "inner words") {
		t.Errorf("a redirect was followed, or an answer was logged: %s", w.log.String())
	}
}

// forgetful loses the first reports of how attempts ended, as a worker does
// that dies.
type forgetful struct {
	*store.Store
	losses atomic.Int32
}

func (f *forgetful) SettleDeliveries(ctx context.Context, s []store.Settlement, off store.SwitchOff) ([]push.Webhook, error) {
	if f.losses.Add(-1) >= 0 {
		return nil, errors.New("killed")
	}
	return f.Store.SettleDeliveries(ctx, s, off)
}

// TestWhatWasNotRecordedIsSentAgain when the lease is over, under the same id.
func TestWhatWasNotRecordedIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(200))
	hook, _ := w.hook(w.tenant, e.URL)
	box := &forgetful{Store: w.Store}
	box.losses.Store(1)
	cfg := quick()
	cfg.Timeout = 100 * time.Millisecond // and so the lease 300
	w.run(box, cfg)
	w.send(w.book(w.tenant, "a"))
	w.eventually("both are delivered", func() bool { return w.outcomes.of("delivered") == 2 })
	var told []string
	for _, d := range e.seen() {
		told = append(told, d.event)
	}
	if !slices.Equal(told, []string{"push.scheduled", "push.scheduled", "push.sent"}) || e.seen()[0].id != e.seen()[1].id {
		t.Errorf("told %v", told)
	}
	if d, err := w.Deliveries(t.Context(), hook.Tenant, hook.ID, push.DeliveryFilter{}, 0, 10); err != nil || d.Deliveries[1].Attempts != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestStopping: attempts under way are carried to their end and recorded; no
// others begin.
func TestStopping(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	e := newEndpoint(t, func(http.ResponseWriter, delivery, int) int {
		begun <- struct{}{}
		<-release
		return 200
	})
	w.hook(w.tenant, e.URL)
	stop := w.run(w.Store, quick())
	w.send(w.book(w.tenant, "a"))
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
	if w.outcomes.of("delivered") != 1 || len(e.seen()) != 1 {
		t.Errorf("%d delivered, %d requests", w.outcomes.of("delivered"), len(e.seen()))
	}
}

// TestAHeldUpWorkerSendsNothing: its lease may be over, and another at it.
func TestAHeldUpWorkerSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(200))
	n := New(w.Store, nil, &w.outcomes, time.Now, quick())
	defer n.client.Close()
	hook, secret := w.hook(w.tenant, e.URL)
	n.deliver(t.Context(), store.Outgoing{Webhook: hook.ID, Attempt: 1, URL: e.URL, Secret: secret, Payload: []byte(`{}`)}, time.Now().Add(-2*n.cfg.Timeout))
	if len(e.seen()) != 0 || w.outcomes.of("failed") != 1 {
		t.Errorf("%d requests, %d failures", len(e.seen()), w.outcomes.of("failed"))
	}
}

// TestPostgresAway: nothing is lost while the outbox can not be reached.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t, always(200))
	w.hook(w.tenant, e.URL)
	box := &unreachable{Store: w.Store}
	box.down.Store(true)
	w.run(box, quick())
	w.book(w.tenant, "a")
	w.eventually("the log complains", func() bool { return strings.Contains(w.log.String(), "looking for events failed") })
	box.down.Store(false)
	w.eventually("it was told", func() bool { return w.outcomes.of("delivered") == 1 })
}

// unreachable is a store that can be cut off.
type unreachable struct {
	*store.Store
	down atomic.Bool
}

func (u *unreachable) ClaimDeliveries(ctx context.Context, o store.OutboxOrder) ([]store.Outgoing, bool, error) {
	if u.down.Load() {
		return nil, false, errors.New("down")
	}
	return u.Store.ClaimDeliveries(ctx, o)
}

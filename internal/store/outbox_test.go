package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/webhooks"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// never switches nothing off.
var never = webhooks.SwitchOff{After: time.Hour, Failures: 1000}

// outgoing takes what is due, of webhooks that may have two under way.
func (b *bundle) outgoing(t testing.TB) []webhooks.Outgoing {
	t.Helper()
	var all []webhooks.Outgoing
	for more := true; more; {
		var (
			claimed []webhooks.Outgoing
			err     error
		)
		claimed, more, err = b.ClaimDeliveries(t.Context(), webhooks.OutboxOrder{Webhooks: 10, PerWebhook: 2, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, claimed...)
	}
	return all
}

func (b *bundle) settle(t testing.TB, off webhooks.SwitchOff, settlements ...webhooks.Settlement) []push.Webhook {
	t.Helper()
	switchedOff, err := b.SettleDeliveries(t.Context(), settlements, off)
	if err != nil {
		t.Fatal(err)
	}
	return switchedOff
}

// ended is an attempt that ended well, or is to be repeated after an hour.
func ended(d webhooks.Outgoing, well bool) webhooks.Settlement {
	n := webhooks.Settlement{ID: d.ID, Webhook: d.Webhook, Attempt: d.Attempt, Delivered: well, Status: 200}
	if !well {
		n.Status, n.Error, n.Retry = 500, "no", time.Hour
	}
	return n
}

// names says which events of which recipients these are.
func names(t testing.TB, b *bundle, claimed []webhooks.Outgoing) []string {
	t.Helper()
	var all []string
	for _, d := range claimed {
		all = append(all, ask[string](t, b.db, `SELECT (payload->'data'->>'recipient') || ' ' || event FROM webhook_deliveries WHERE id = $1`, d.ID))
	}
	return all
}

func wantNames(t testing.TB, b *bundle, claimed []webhooks.Outgoing, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, names(t, b, claimed)); diff != "" {
		t.Error(diff)
	}
}

func (b *bundle) passes(t testing.TB, d time.Duration) {
	t.Helper()
	b.exec(t, `UPDATE webhook_deliveries SET next_at = next_at - $1::interval, queued_at = queued_at - $1::interval, created_at = created_at - $1::interval`, d)
	b.exec(t, `UPDATE webhooks SET failing_since = failing_since - $1::interval, old_secret_until = old_secret_until - $1::interval, deleted_at = deleted_at - $1::interval`, d)
}

// TestClaimDeliveries_EventOrder: the events of a push are delivered in order, whatever becomes of the attempts. They
// do not wait for those of another push.
func TestClaimDeliveries_EventOrder(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.hook(t)
	p, q := b.booked(t, "p", 0), b.booked(t, "q", 0)
	b.finish(t, b.claimed(t, p), sent)

	first := b.outgoing(t)
	wantNames(t, b, first, "p push.scheduled", "q push.scheduled")
	b.finish(t, b.claimed(t, q), sent)
	wantNames(t, b, b.outgoing(t)) // two are under way

	b.settle(t, never, ended(first[0], true), ended(first[1], false))
	second := b.outgoing(t)
	wantNames(t, b, second, "p push.sent") // q's first is to be tried again
	b.settle(t, never, ended(second[0], true))

	b.passes(t, time.Hour)
	again := b.outgoing(t)
	wantNames(t, b, again, "q push.scheduled")
	if again[0].ID != first[1].ID || again[0].Attempt != 2 {
		t.Errorf("%+v, want a second attempt of %s", again[0], first[1].ID)
	}
	gaveUp := ended(again[0], false)
	gaveUp.GaveUp = true
	b.settle(t, never, gaveUp)
	last := b.outgoing(t)
	wantNames(t, b, last, "q push.sent") // nothing waits for what was given up
	b.settle(t, never, ended(last[0], true))
	b.passes(t, 100*time.Hour)
	wantNames(t, b, b.outgoing(t))
}

// TestClaimDeliveries_Concurrent: several workers claim each delivery once, and the events of a push in order.
func TestClaimDeliveries_Concurrent(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for range 3 {
		b.hook(t)
	}
	for i := range 40 {
		b.finish(t, b.claimed(t, b.booked(t, fmt.Sprint(i), 0)), sent)
	}
	var (
		mu    sync.Mutex
		seen  = map[uuid.UUID]bool{}
		order = map[string][]string{}
		wg    sync.WaitGroup
	)
	total := func() int { mu.Lock(); defer mu.Unlock(); return len(seen) }
	for range 4 {
		wg.Go(func() {
			for total() < 240 && t.Context().Err() == nil {
				claimed, _, err := b.ClaimDeliveries(t.Context(), webhooks.OutboxOrder{Webhooks: 10, PerWebhook: 5, Lease: time.Minute})
				if err != nil {
					t.Error(err)
					return
				}
				for _, d := range claimed {
					mu.Lock()
					if seen[d.ID] || d.Attempt != 1 {
						t.Errorf("%s was claimed twice", d.ID)
					}
					seen[d.ID] = true
					recipient, event, _ := strings.Cut(string(d.Payload), `"id"`)
					order[d.Webhook.String()+event[:40]] = append(order[d.Webhook.String()+event[:40]], recipient[:30])
					mu.Unlock()
					if _, err := b.SettleDeliveries(t.Context(), []webhooks.Settlement{ended(d, true)}, never); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if len(order) != 120 {
		t.Errorf("%d pushes and webhooks", len(order))
	}
	for _, events := range order {
		if len(events) != 2 || !strings.Contains(events[0], "scheduled") || !strings.Contains(events[1], "sent") {
			t.Errorf("events came as %v", events)
		}
	}
}

// TestClaimDeliveries_LostAttempt: a delivery whose worker died is claimed again when its lease ends. If the worker was
// only slow, its success counts and its failure does not.
func TestClaimDeliveries_LostAttempt(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.hook(t)
	p := b.booked(t, "p", time.Hour)
	first := b.outgoing(t)[0]
	wantNames(t, b, b.outgoing(t))
	b.passes(t, time.Minute)
	second := b.outgoing(t)[0]
	if second.ID != first.ID || second.Attempt != 2 {
		t.Fatalf("%+v", second)
	}
	late := ended(first, false)
	late.GaveUp = true
	b.settle(t, never, late)
	state := func() string {
		return ask[string](t, b.db, `SELECT status FROM webhook_deliveries WHERE push_id = $1`, p.ID)
	}
	if got := state(); got != "sending" {
		t.Errorf("a late failure made it %s", got)
	}
	b.settle(t, never, ended(first, true))
	b.settle(t, never, ended(second, false))
	if got := state(); got != "delivered" {
		t.Errorf("it was delivered late, and is %s", got)
	}
	if n := ask[int](t, b.db, `SELECT failures FROM webhooks`); n != 0 {
		t.Errorf("late failures are counted against the endpoint: %d", n)
	}
}

// TestClaimDeliveries_FailingEndpoint: a failing endpoint is tried with one delivery at a time. Events that wait for an
// earlier one do not delay those that can be sent.
func TestClaimDeliveries_FailingEndpoint(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	bad := b.hook(t)
	var drafts []booking.Draft
	for i := range 300 {
		drafts = append(drafts, draft(b.tenant, fmt.Sprint(i), 0))
	}
	if _, err := b.Book(t.Context(), booking.Order{Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	good := b.hook(t)
	b.exec(t, `UPDATE pushes SET expires_at = now()`)
	if _, err := b.Expire(t.Context(), push.Lanes(1), 1000); err != nil {
		t.Fatal(err)
	}
	of := func(claimed []webhooks.Outgoing, w push.Webhook) []webhooks.Outgoing {
		return slices.DeleteFunc(slices.Clone(claimed), func(d webhooks.Outgoing) bool { return d.Webhook != w.ID })
	}
	claimed := b.outgoing(t)
	if len(of(claimed, bad)) != 2 || len(of(claimed, good)) != 2 {
		t.Fatalf("%d of the one, %d of the other", len(of(claimed, bad)), len(of(claimed, good)))
	}
	var settlements []webhooks.Settlement
	for _, d := range claimed {
		settlements = append(settlements, ended(d, d.Webhook == good.ID))
	}
	b.settle(t, never, settlements...)
	claimed = b.outgoing(t)
	if len(of(claimed, bad)) != 1 || len(of(claimed, good)) != 2 {
		t.Errorf("%d of the one that fails, %d of the other", len(of(claimed, bad)), len(of(claimed, good)))
	}
	b.settle(t, never, ended(of(claimed, good)[0], true))
	if claimed = b.outgoing(t); len(claimed) != 1 {
		t.Errorf("%d while one of two is under way", len(claimed))
	}
}

// TestSettleDeliveries_SwitchesOff: a webhook is switched off after a time and a number of failures, or at once when
// the endpoint is gone; a success resets both. Deliveries that waited are sent when the webhook is enabled again.
func TestSettleDeliveries_SwitchesOff(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.hook(t)
	off := webhooks.SwitchOff{After: 3 * time.Hour, Failures: 3}
	attempt := func(well bool) []push.Webhook {
		t.Helper()
		claimed := b.outgoing(t)
		if len(claimed) != 1 {
			t.Fatalf("%d are due", len(claimed))
		}
		switched := b.settle(t, off, ended(claimed[0], well))
		b.passes(t, 2*time.Hour)
		return switched
	}
	next := func() { b.booked(t, uuid.NewString(), time.Hour) }
	next()
	attempt(false)
	attempt(false) // two failures, two hours apart
	attempt(true)
	if got, _ := b.Webhook(t.Context(), b.tenant, w.ID); got.Failures != 0 || !got.FailingSince.IsZero() {
		t.Errorf("a success left %+v", got)
	}
	next()
	attempt(false)
	attempt(false)
	switched := attempt(false)
	got, err := b.Webhook(t.Context(), b.tenant, w.ID)
	if err != nil || len(switched) != 1 || switched[0].ID != w.ID || got.DisabledAt.IsZero() ||
		!strings.HasPrefix(got.DisabledReason, "3 attempts in a row have failed, since 20") {
		t.Fatalf("%+v, %+v, %v", switched, got, err)
	}
	next() // writes no event
	wantNames(t, b, b.outgoing(t))
	if got, err = b.EnableWebhook(t.Context(), b.tenant, w.ID); err != nil || !got.DisabledAt.IsZero() || got.Failures != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	claimed := b.outgoing(t)
	if len(claimed) != 1 || claimed[0].Attempt != 4 {
		t.Fatalf("%+v", claimed)
	}
	gone := ended(claimed[0], false)
	gone.Gone = true
	if switched := b.settle(t, never, gone); len(switched) != 1 || switched[0].DisabledReason != "the endpoint answered 410 Gone" {
		t.Errorf("%+v", switched)
	}
}

// TestReplay: an ended delivery is sent again under its own id, and failed ones together.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.hook(t)
	for i := range 3 {
		b.booked(t, fmt.Sprint(i), time.Hour)
	}
	var claimed []webhooks.Outgoing
	for len(claimed) < 3 {
		for _, d := range b.outgoing(t) {
			n := ended(d, len(claimed) == 0)
			n.GaveUp = !n.Delivered
			b.settle(t, never, n)
			claimed = append(claimed, d)
		}
	}
	wantNames(t, b, b.outgoing(t))
	d, err := b.Replay(t.Context(), b.tenant, w.ID, claimed[0].ID)
	if err != nil || d.Status != push.DeliveryWaiting || d.Attempts != 0 || !d.EndedAt.IsZero() {
		t.Fatalf("%+v, %v", d, err)
	}
	again := b.outgoing(t)
	if len(again) != 1 || again[0].ID != claimed[0].ID || string(again[0].Payload) != string(claimed[0].Payload) {
		t.Fatalf("%+v", again)
	}
	if d, err = b.Replay(t.Context(), b.tenant, w.ID, claimed[0].ID); err != nil || d.Status != push.DeliverySending || d.Attempts != 1 {
		t.Errorf("while it is sent: %+v, %v", d, err)
	}
	b.settle(t, never, ended(again[0], true))
	if n, err := b.ReplayFailed(t.Context(), b.tenant, w.ID, time.Now().Add(time.Hour), 100); n != 0 || err != nil {
		t.Errorf("%d failed in the future, %v", n, err)
	}
	if n, err := b.ReplayFailed(t.Context(), b.tenant, w.ID, time.Now().Add(-time.Hour), 1); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if again = b.outgoing(t); len(again) != 1 || again[0].ID != claimed[1].ID {
		t.Errorf("%+v", again)
	}
	if _, err := b.Replay(t.Context(), b.tenant, w.ID, uuid.New()); err != push.ErrNotFound {
		t.Error(err)
	}
}

// TestDeliveries lists the newest first, page by page, and by filters.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w, other := b.hook(t), b.hook(t)
	p := b.booked(t, "p", 0)
	b.finish(t, b.claimed(t, p), sent)
	q := b.booked(t, "q", 0)
	if _, err := b.AddTestDelivery(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	list := func(f push.DeliveryFilter, before int64, limit int) (events []string, last int64) {
		t.Helper()
		found, err := b.Deliveries(t.Context(), b.tenant, w.ID, f, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found.Deliveries {
			events, last = append(events, string(d.Event)), d.Seq
		}
		return events, last
	}
	first, last := list(push.DeliveryFilter{}, 0, 3)
	second, _ := list(push.DeliveryFilter{}, last, 3)
	if diff := cmp.Diff([]string{"webhook.test", "push.scheduled", "push.sent", "push.scheduled"}, append(first, second...)); diff != "" {
		t.Error(diff)
	}
	claimed := b.outgoing(t)
	for name, c := range map[string]struct {
		f    push.DeliveryFilter
		want int
	}{
		"by push":   {push.DeliveryFilter{Push: q.ID}, 1},
		"by event":  {push.DeliveryFilter{Event: push.EventScheduled}, 2},
		"by status": {push.DeliveryFilter{Status: push.DeliverySending}, 2},
		"by all":    {push.DeliveryFilter{Push: p.ID, Event: push.EventSent, Status: push.DeliveryWaiting}, 1},
		"none":      {push.DeliveryFilter{Push: uuid.New()}, 0},
	} {
		if got, _ := list(c.f, 0, 10); len(got) != c.want {
			t.Errorf("%s: %v of %d claimed", name, got, len(claimed))
		}
	}
	if found, err := b.Deliveries(t.Context(), b.tenant, other.ID, push.DeliveryFilter{}, 0, 10); err != nil || len(found.Deliveries) != 3 {
		t.Errorf("%d of the other, %v", len(found.Deliveries), err)
	}
}

// TestSweepDeliveries: old deliveries are removed in small portions, ended or not. A deleted webhook is removed with
// all of its deliveries.
func TestSweepDeliveries(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	kept, deleted := b.hook(t), b.hook(t)
	for i := range 5 {
		b.booked(t, fmt.Sprint(i), time.Hour)
	}
	b.passes(t, 25*time.Hour)
	b.booked(t, "new", time.Hour)
	rows := func(w push.Webhook) int {
		return ask[int](t, b.db, `SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1`, w.ID)
	}
	sweep := func() int {
		t.Helper()
		n, err := b.SweepDeliveries(t.Context(), 24*time.Hour, 4)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sweep(); n != 4 {
		t.Errorf("swept %d at first", n)
	}
	for sweep() > 0 {
	}
	if rows(kept) != 1 || rows(deleted) != 1 {
		t.Errorf("%d and %d rows are left", rows(kept), rows(deleted))
	}
	if err := b.DeleteWebhook(t.Context(), b.tenant, deleted.ID); err != nil {
		t.Fatal(err)
	}
	hooks := func() int { return ask[int](t, b.db, `SELECT count(*) FROM webhooks`) }
	if sweep(); rows(deleted) != 0 || hooks() != 2 {
		t.Errorf("%d rows, %d webhooks", rows(deleted), hooks())
	}
	b.passes(t, time.Hour)
	if sweep(); hooks() != 1 || rows(kept) != 1 {
		t.Errorf("%d webhooks, %d rows of the kept one", hooks(), rows(kept))
	}
}

// TestCreateWebhook_LimitConcurrent: concurrent creators do not get past the limit.
func TestCreateWebhook_LimitConcurrent(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		refused int
	)
	for range 12 {
		wg.Go(func() {
			_, err := b.CreateWebhook(b.ctx(), push.Webhook{ID: uuid.New(), Tenant: b.tenant, URL: "https://example.com", Events: push.Events}, "s", 5)
			mu.Lock()
			defer mu.Unlock()
			switch err {
			case push.ErrTooManyWebhooks:
				refused++
			case nil:
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := b.Webhooks(t.Context(), b.tenant); err != nil || len(all) != 5 || refused != 7 {
		t.Errorf("%d webhooks, %d refused, %v", len(all), refused, err)
	}
}

// TestRotateWebhookSecret: both secrets sign for the time of overlap.
func TestRotateWebhookSecret(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.hook(t)
	if _, err := b.RotateWebhookSecret(t.Context(), b.tenant, w.ID, "new", time.Hour); err != nil {
		t.Fatal(err)
	}
	b.booked(t, "p", time.Hour)
	d := b.outgoing(t)[0]
	if d.Secret != "new" || d.OldSecret != "whsec_c2VjcmV0" {
		t.Errorf("%+v", d)
	}
	b.passes(t, time.Hour)
	if d = b.outgoing(t)[0]; d.Secret != "new" || d.OldSecret != "" {
		t.Errorf("after the overlap: %+v", d)
	}
	if _, err := b.RotateWebhookSecret(t.Context(), uuid.New(), w.ID, "x", time.Hour); err != push.ErrNotFound {
		t.Error(err)
	}
}

package webhooks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/webhooks"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/webhook"
)

// names returns the recipient and the event of each delivery.
func names(t testing.TB, b *bundle, claimed []webhooks.Outgoing) []string {
	t.Helper()
	var all []string
	for _, d := range claimed {
		all = append(all, storetest.Ask[string](t, b.DB, `SELECT (payload->'data'->>'recipient') || ' ' || event FROM webhook_deliveries WHERE id = $1`, d.ID))
	}
	return all
}

func wantNames(t testing.TB, b *bundle, claimed []webhooks.Outgoing, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, names(t, b, claimed)); diff != "" {
		t.Error(diff)
	}
}

// TestClaimDeliveries_EventOrder checks that the events of a push are delivered in order, whatever the results of the
// attempts. They do not wait for the events of another push.
func TestClaimDeliveries_EventOrder(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Hook(t)
	p, q := b.Booked(t, "p", 0), b.Booked(t, "q", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent)

	first := b.Outgoing(t)
	wantNames(t, b, first, "p push.scheduled", "q push.scheduled")
	b.MustFinish(t, b.Claimed(t, q), storetest.Sent)
	wantNames(t, b, b.Outgoing(t)) // two are under way

	b.Settle(t, storetest.Never, storetest.Ended(first[0], true), storetest.Ended(first[1], false))
	second := b.Outgoing(t)
	wantNames(t, b, second, "p push.sent") // q's first is to be tried again
	b.Settle(t, storetest.Never, storetest.Ended(second[0], true))

	b.Passes(t, time.Hour)
	again := b.Outgoing(t)
	wantNames(t, b, again, "q push.scheduled")
	if again[0].ID != first[1].ID || again[0].Attempt != 2 {
		t.Errorf("%+v, want a second attempt of %s", again[0], first[1].ID)
	}
	gaveUp := storetest.Ended(again[0], false)
	gaveUp.GaveUp = true
	b.Settle(t, storetest.Never, gaveUp)
	last := b.Outgoing(t)
	wantNames(t, b, last, "q push.sent") // an event does not wait for one that was given up
	b.Settle(t, storetest.Never, storetest.Ended(last[0], true))
	b.Passes(t, 100*time.Hour)
	wantNames(t, b, b.Outgoing(t))
}

// TestClaimDeliveries_Concurrent checks that several workers claim each delivery once, and the events of a push in
// order.
func TestClaimDeliveries_Concurrent(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for range 3 {
		b.Hook(t)
	}
	for i := range 40 {
		b.MustFinish(t, b.Claimed(t, b.Booked(t, fmt.Sprint(i), 0)), storetest.Sent)
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
				claimed, _, err := b.ClaimDeliveries(t.Context(), webhooks.ClaimLimits{Webhooks: 10, PerWebhook: 5, Lease: time.Minute})
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
					if _, err := b.SettleDeliveries(t.Context(), []webhooks.Settlement{storetest.Ended(d, true)}, storetest.Never); err != nil {
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

// TestClaimDeliveries_LostAttempt checks that a delivery of a dead worker is claimed again when its lease expires. If
// the worker was only slow, its success counts and its failure does not.
func TestClaimDeliveries_LostAttempt(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Hook(t)
	p := b.Booked(t, "p", time.Hour)
	first := b.Outgoing(t)[0]
	wantNames(t, b, b.Outgoing(t))
	b.Passes(t, time.Minute)
	second := b.Outgoing(t)[0]
	if second.ID != first.ID || second.Attempt != 2 {
		t.Fatalf("%+v", second)
	}
	late := storetest.Ended(first, false)
	late.GaveUp = true
	b.Settle(t, storetest.Never, late)
	state := func() string {
		return storetest.Ask[string](t, b.DB, `SELECT status FROM webhook_deliveries WHERE push_id = $1`, p.ID)
	}
	if got := state(); got != "sending" {
		t.Errorf("a late failure made it %s", got)
	}
	b.Settle(t, storetest.Never, storetest.Ended(first, true))
	b.Settle(t, storetest.Never, storetest.Ended(second, false))
	if got := state(); got != "delivered" {
		t.Errorf("it was delivered late, and is %s", got)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT failures FROM webhooks`); n != 0 {
		t.Errorf("late failures are counted against the endpoint: %d", n)
	}
}

// TestClaimDeliveries_FailingEndpoint checks that a failing endpoint is tried with one delivery at a time. Events that
// wait for an earlier one do not delay those that can be sent.
func TestClaimDeliveries_FailingEndpoint(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	bad := b.Hook(t)
	var drafts []booking.Draft
	for i := range 300 {
		drafts = append(drafts, storetest.Draft(b.TenantID, fmt.Sprint(i), 0))
	}
	if _, err := b.Book(t.Context(), booking.Order{Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	good := b.Hook(t)
	b.Exec(t, `UPDATE pushes SET expires_at = now()`)
	if _, err := b.Expire(t.Context(), push.Lanes(1), 1000); err != nil {
		t.Fatal(err)
	}
	of := func(claimed []webhooks.Outgoing, w webhook.Webhook) []webhooks.Outgoing {
		return slices.DeleteFunc(slices.Clone(claimed), func(d webhooks.Outgoing) bool { return d.Webhook != w.ID })
	}
	claimed := b.Outgoing(t)
	if len(of(claimed, bad)) != 2 || len(of(claimed, good)) != 2 {
		t.Fatalf("%d of the one, %d of the other", len(of(claimed, bad)), len(of(claimed, good)))
	}
	var settlements []webhooks.Settlement
	for _, d := range claimed {
		settlements = append(settlements, storetest.Ended(d, d.Webhook == good.ID))
	}
	b.Settle(t, storetest.Never, settlements...)
	claimed = b.Outgoing(t)
	if len(of(claimed, bad)) != 1 || len(of(claimed, good)) != 2 {
		t.Errorf("%d of the one that fails, %d of the other", len(of(claimed, bad)), len(of(claimed, good)))
	}
	b.Settle(t, storetest.Never, storetest.Ended(of(claimed, good)[0], true))
	if claimed = b.Outgoing(t); len(claimed) != 1 {
		t.Errorf("%d while one of two is under way", len(claimed))
	}
}

// TestSettleDeliveries_SwitchesOff checks that a webhook is switched off after a time and a number of failures, or at
// once if the endpoint is gone. A success resets both. Deliveries that waited are sent when the webhook is enabled
// again.
func TestSettleDeliveries_SwitchesOff(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	off := webhooks.DisableLimits{After: 3 * time.Hour, Failures: 3}
	attempt := func(well bool) []webhook.Webhook {
		t.Helper()
		claimed := b.Outgoing(t)
		if len(claimed) != 1 {
			t.Fatalf("%d are due", len(claimed))
		}
		switched := b.Settle(t, off, storetest.Ended(claimed[0], well))
		b.Passes(t, 2*time.Hour)
		return switched
	}
	next := func() { b.Booked(t, uuid.NewString(), time.Hour) }
	next()
	attempt(false)
	attempt(false) // two failures, two hours apart
	attempt(true)
	if got, _ := b.Webhook(t.Context(), b.TenantID, w.ID); got.Failures != 0 || !got.FailingSince.IsZero() {
		t.Errorf("a success left %+v", got)
	}
	next()
	attempt(false)
	attempt(false)
	switched := attempt(false)
	got, err := b.Webhook(t.Context(), b.TenantID, w.ID)
	if err != nil || len(switched) != 1 || switched[0].ID != w.ID || got.DisabledAt.IsZero() ||
		!strings.HasPrefix(got.DisabledReason, "3 attempts in a row have failed, since 20") {
		t.Fatalf("%+v, %+v, %v", switched, got, err)
	}
	next() // writes no event
	wantNames(t, b, b.Outgoing(t))
	if got, err = b.EnableWebhook(t.Context(), b.TenantID, w.ID); err != nil || !got.DisabledAt.IsZero() || got.Failures != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	claimed := b.Outgoing(t)
	if len(claimed) != 1 || claimed[0].Attempt != 4 {
		t.Fatalf("%+v", claimed)
	}
	gone := storetest.Ended(claimed[0], false)
	gone.Gone = true
	if switched := b.Settle(t, storetest.Never, gone); len(switched) != 1 || switched[0].DisabledReason != "the endpoint answered 410 Gone" {
		t.Errorf("%+v", switched)
	}
}

// TestReplay checks that an ended delivery is sent again under its own id, and that failed deliveries can be sent again
// together.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	for i := range 3 {
		b.Booked(t, fmt.Sprint(i), time.Hour)
	}
	var claimed []webhooks.Outgoing
	for len(claimed) < 3 {
		for _, d := range b.Outgoing(t) {
			n := storetest.Ended(d, len(claimed) == 0)
			n.GaveUp = !n.Delivered
			b.Settle(t, storetest.Never, n)
			claimed = append(claimed, d)
		}
	}
	wantNames(t, b, b.Outgoing(t))
	d, err := b.Replay(t.Context(), b.TenantID, w.ID, claimed[0].ID)
	if err != nil || d.Status != webhook.Waiting || d.Attempts != 0 || !d.EndedAt.IsZero() {
		t.Fatalf("%+v, %v", d, err)
	}
	again := b.Outgoing(t)
	if len(again) != 1 || again[0].ID != claimed[0].ID || string(again[0].Payload) != string(claimed[0].Payload) {
		t.Fatalf("%+v", again)
	}
	if d, err = b.Replay(t.Context(), b.TenantID, w.ID, claimed[0].ID); err != nil || d.Status != webhook.Sending || d.Attempts != 1 {
		t.Errorf("while it is sent: %+v, %v", d, err)
	}
	b.Settle(t, storetest.Never, storetest.Ended(again[0], true))
	if n, err := b.ReplayFailed(t.Context(), b.TenantID, w.ID, time.Now().Add(time.Hour), 100); n != 0 || err != nil {
		t.Errorf("%d failed in the future, %v", n, err)
	}
	if n, err := b.ReplayFailed(t.Context(), b.TenantID, w.ID, time.Now().Add(-time.Hour), 1); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if again = b.Outgoing(t); len(again) != 1 || again[0].ID != claimed[1].ID {
		t.Errorf("%+v", again)
	}
	if _, err := b.Replay(t.Context(), b.TenantID, w.ID, uuid.New()); err != push.ErrNotFound {
		t.Error(err)
	}
}

// TestDeliveries checks the order, newest first, the pages, and the filters.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w, other := b.Hook(t), b.Hook(t)
	p := b.Booked(t, "p", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	q := b.Booked(t, "q", 0)
	if _, err := b.AddTestDelivery(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	list := func(f webhook.DeliveryFilter, before int64, limit int) (events []string, last int64) {
		t.Helper()
		found, err := b.Deliveries(t.Context(), b.TenantID, w.ID, f, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found.Deliveries {
			events, last = append(events, string(d.Event)), d.Seq
		}
		return events, last
	}
	first, last := list(webhook.DeliveryFilter{}, 0, 3)
	second, _ := list(webhook.DeliveryFilter{}, last, 3)
	if diff := cmp.Diff([]string{"webhook.test", "push.scheduled", "push.sent", "push.scheduled"}, append(first, second...)); diff != "" {
		t.Error(diff)
	}
	claimed := b.Outgoing(t)
	for name, c := range map[string]struct {
		f    webhook.DeliveryFilter
		want int
	}{
		"by push":   {webhook.DeliveryFilter{Push: q.ID}, 1},
		"by event":  {webhook.DeliveryFilter{Event: webhook.EventScheduled}, 2},
		"by status": {webhook.DeliveryFilter{Status: webhook.Sending}, 2},
		"by all":    {webhook.DeliveryFilter{Push: p.ID, Event: webhook.EventSent, Status: webhook.Waiting}, 1},
		"none":      {webhook.DeliveryFilter{Push: uuid.New()}, 0},
	} {
		if got, _ := list(c.f, 0, 10); len(got) != c.want {
			t.Errorf("%s: %v of %d claimed", name, got, len(claimed))
		}
	}
	if found, err := b.Deliveries(t.Context(), b.TenantID, other.ID, webhook.DeliveryFilter{}, 0, 10); err != nil || len(found.Deliveries) != 3 {
		t.Errorf("%d of the other, %v", len(found.Deliveries), err)
	}
}

// TestSweepDeliveries checks that old deliveries are removed in small portions, ended or not. A deleted webhook is
// removed with all of its deliveries.
func TestSweepDeliveries(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	kept, deleted := b.Hook(t), b.Hook(t)
	for i := range 5 {
		b.Booked(t, fmt.Sprint(i), time.Hour)
	}
	b.Passes(t, 25*time.Hour)
	b.Booked(t, "new", time.Hour)
	rows := func(w webhook.Webhook) int {
		return storetest.Ask[int](t, b.DB, `SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1`, w.ID)
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
	if err := b.DeleteWebhook(t.Context(), b.TenantID, deleted.ID); err != nil {
		t.Fatal(err)
	}
	hooks := func() int { return storetest.Ask[int](t, b.DB, `SELECT count(*) FROM webhooks`) }
	if sweep(); rows(deleted) != 0 || hooks() != 2 {
		t.Errorf("%d rows, %d webhooks", rows(deleted), hooks())
	}
	b.Passes(t, time.Hour)
	if sweep(); hooks() != 1 || rows(kept) != 1 {
		t.Errorf("%d webhooks, %d rows of the kept one", hooks(), rows(kept))
	}
}

// TestCreateWebhook_LimitConcurrent checks that concurrent calls do not exceed the limit.
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
			_, err := b.CreateWebhook(context.Background(), webhook.Webhook{ID: uuid.New(), Tenant: b.TenantID, URL: "https://example.com", Events: webhook.Events}, "s", 5)
			mu.Lock()
			defer mu.Unlock()
			switch err {
			case webhook.ErrTooMany:
				refused++
			case nil:
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := b.Webhooks(t.Context(), b.TenantID); err != nil || len(all) != 5 || refused != 7 {
		t.Errorf("%d webhooks, %d refused, %v", len(all), refused, err)
	}
}

// TestRotateWebhookSecret checks that both secrets sign during the overlap.
func TestRotateWebhookSecret(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	if _, err := b.RotateWebhookSecret(t.Context(), b.TenantID, w.ID, "new", time.Hour); err != nil {
		t.Fatal(err)
	}
	b.Booked(t, "p", time.Hour)
	d := b.Outgoing(t)[0]
	if d.Secret != "new" || d.OldSecret != "whsec_c2VjcmV0" {
		t.Errorf("%+v", d)
	}
	b.Passes(t, time.Hour)
	if d = b.Outgoing(t)[0]; d.Secret != "new" || d.OldSecret != "" {
		t.Errorf("after the overlap: %+v", d)
	}
	if _, err := b.RotateWebhookSecret(t.Context(), uuid.New(), w.ID, "x", time.Hour); err != push.ErrNotFound {
		t.Error(err)
	}
}

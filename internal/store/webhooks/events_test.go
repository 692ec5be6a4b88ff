package webhooks_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestEvents_EachChangeOnce checks that every change of a push writes its events for the tenant's webhooks once.
func TestEvents_EachChangeOnce(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	for name, c := range map[string]struct {
		live func(t *testing.T, p push.Push)
		want []string
	}{
		"booked":  {func(*testing.T, push.Push) {}, []string{"push.scheduled"}},
		"claimed": {func(t *testing.T, p push.Push) { b.Claimed(t, p) }, []string{"push.scheduled"}},
		"sent":    {func(t *testing.T, p push.Push) { b.MustFinish(t, b.Claimed(t, p), storetest.Sent) }, []string{"push.scheduled", "push.sent"}},
		"failed":  {func(t *testing.T, p push.Push) { b.MustFinish(t, b.Claimed(t, p), storetest.GaveUp) }, []string{"push.scheduled", "push.failed"}},
		"refused, and sent": {func(t *testing.T, p push.Push) {
			b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
			b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
		}, []string{"push.scheduled", "push.deferred", "push.sent"}},
		"reaped, and sent after all": {func(t *testing.T, p push.Push) {
			c := b.Claimed(t, p)
			b.MustFinish(t, c, storetest.LostTrack)
			b.MustFinish(t, c, storetest.Sent)
			b.MustFinish(t, c, storetest.Sent)
		}, []string{"push.scheduled", "push.deferred", "push.sent"}},
		"finished twice": {func(t *testing.T, p push.Push) {
			c := b.Claimed(t, p)
			b.MustFinish(t, c, storetest.GaveUp)
			b.MustFinish(t, c, storetest.GaveUp)
		}, []string{"push.scheduled", "push.failed"}},
		"canceled twice": {func(t *testing.T, p push.Push) {
			for range 2 {
				if _, err := b.Cancel(t.Context(), p.Tenant, p.ID); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{"push.scheduled", "push.canceled"}},
		"put off by an actual send": {func(t *testing.T, p push.Push) {
			b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
			next := b.Booked(t, p.Recipient, 0)
			if c := b.MustClaim(t, p.Recipient, storetest.ThreeRules); c.Outcome != booking.PutOff {
				t.Fatalf("%+v", c)
			}
			if diff := cmp.Diff([]string{"push.scheduled", "push.deferred"}, b.EventsOf(t, w, next)); diff != "" {
				t.Error(diff)
			}
		}, []string{"push.scheduled", "push.sent"}},
		"moved": {func(t *testing.T, p push.Push) {
			p.SendAt, p.RequestedSendAt = p.SendAt.Add(time.Hour), p.SendAt.Add(time.Hour)
			if _, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}}); err != nil {
				t.Fatal(err)
			}
		}, []string{"push.scheduled", "push.scheduled"}},
		"expired at a claim": {func(t *testing.T, p push.Push) {
			b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
			b.MustClaim(t, p.Recipient, nil)
		}, []string{"push.scheduled", "push.expired"}},
		"expired by the clock": {func(t *testing.T, p push.Push) {
			b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
			for range 2 {
				if _, err := b.Expire(t.Context(), push.Lanes(1), 1000); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{"push.scheduled", "push.expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.Booked(t, name, 0)
			c.live(t, p)
			if diff := cmp.Diff(c.want, b.EventsOf(t, w, p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEvents_NoneWithoutChange checks that refused orders, dry runs and rolled back changes leave no events.
func TestEvents_NoneWithoutChange(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Hook(t)
	p := b.Booked(t, "a", time.Hour)
	before := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM webhook_deliveries`)

	near := []booking.Draft{storetest.Draft(b.TenantID, "b", time.Hour), storetest.Draft(b.TenantID, "b", time.Hour+time.Second)}
	for _, o := range []booking.Order{
		{Drafts: near[:1], DryRun: true},
		{Drafts: near, Atomic: true},
		{Drafts: []booking.Draft{storetest.Draft(b.TenantID, "a", time.Hour)}},
	} {
		o.Policy = quota.Policy{{Name: "one", Limit: 1, Window: time.Minute}, {Name: "two", Limit: 2, Window: time.Hour}}
		if _, err := b.Book(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.Exec(t, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'there is an event: %', NEW.event; END $$`)
	b.Exec(t, `CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON webhook_deliveries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
	if _, err := b.Cancel(t.Context(), b.TenantID, p.ID); err == nil || !strings.Contains(err.Error(), "there is an event: push.canceled") {
		t.Errorf("canceled: %v", err)
	}
	b.WantStatus(t, p, push.Scheduled)
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM webhook_deliveries`); n != before {
		t.Errorf("%d events, want %d", n, before)
	}
}

// TestEvents_WantedOnly checks that a webhook gets the events of its own tenant that it asks for, while it is enabled.
func TestEvents_WantedOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all, ends, off, gone := b.Hook(t), b.Hook(t, webhook.EventSent, webhook.EventCanceled), b.Hook(t), b.Hook(t)
	b.Exec(t, `UPDATE webhooks SET disabled_at = now() WHERE id = $1`, off.ID)
	if err := b.DeleteWebhook(t.Context(), b.TenantID, gone.ID); err != nil {
		t.Fatal(err)
	}
	stranger := &bundle{&storetest.Bundle{Store: b.Store, DB: b.DB, Watch: b.Watch, TenantID: uuid.New()}}
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, stranger.TenantID, stranger.TenantID.String())
	theirs := stranger.Hook(t)

	p := b.Booked(t, "a", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	for _, c := range []struct {
		hook webhook.Webhook
		want []string
	}{{all, []string{"push.scheduled", "push.sent"}}, {ends, []string{"push.sent"}}, {off, nil}, {gone, nil}, {theirs, nil}} {
		if got := b.EventsOf(t, c.hook, p); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestEvents_NearLimit checks that a booking that uses four fifths of a rule's limit writes an event after its own, in
// the same transaction.
func TestEvents_NearLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, deaf := b.Hook(t), b.Hook(t, webhook.EventSent)
	policy := quota.Policy{{Name: "single", Limit: 1, Window: time.Second}, {Name: "five", Limit: 5, Window: time.Hour}, {Name: "ten", Limit: 10, Window: 24 * time.Hour}}
	var used []string
	for i := range 9 {
		in := 2*time.Hour + time.Duration(i)*15*time.Minute // an hour allows 4 of them
		d := storetest.Draft(b.TenantID, "a", in)
		if v := storetest.MustBook(t, b.Store, policy, d); v.Outcome != booking.Booked {
			t.Fatalf("%d: %+v", i, v)
		}
		told := b.EventsOf(t, w, d.Push)
		if told[0] != "push.scheduled" || len(b.EventsOf(t, deaf, d.Push)) > 0 {
			t.Errorf("%d: told %v", i, told)
		}
		rows, _ := b.Watch.Query(t.Context(), `SELECT (payload->'data'->>'rule') || ' ' || (payload->'data'->>'used') || ' of ' || (payload->'data'->>'limit')
			FROM webhook_deliveries WHERE push_id = $1 AND event = 'quota.near_limit' ORDER BY seq`, d.Push.ID)
		near, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range near {
			used = append(used, strconv.Itoa(i+1)+": "+n)
		}
	}
	want := []string{"4: five 4 of 5", "5: five 4 of 5", "6: five 4 of 5", "7: five 4 of 5", "8: five 4 of 5", "8: ten 8 of 10", "9: five 4 of 5", "9: ten 9 of 10"}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Error(diff)
	}
	// A move is a booking, too.
	d := storetest.Draft(b.TenantID, "a", 100*time.Hour)
	storetest.MustBook(t, b.Store, policy, d)
	d.Push.SendAt, d.Push.RequestedSendAt = storetest.Began.Add(2*time.Hour+7*time.Minute), storetest.Began.Add(2*time.Hour+7*time.Minute)
	if _, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: policy}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"push.scheduled", "push.scheduled", "quota.near_limit", "quota.near_limit"}, b.EventsOf(t, w, d.Push)); diff != "" {
		t.Error(diff)
	}
}

// TestEvents_LargeGroups checks that a statement that changes a thousand pushes writes all of their events.
func TestEvents_LargeGroups(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	var drafts []booking.Draft
	for i := range 1000 {
		drafts = append(drafts, storetest.Draft(b.TenantID, strconv.Itoa(i), 0))
	}
	if _, err := b.Book(t.Context(), booking.Order{Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	b.Exec(t, `UPDATE pushes SET expires_at = now() WHERE tenant_id = $1`, b.TenantID)
	if _, err := b.Expire(t.Context(), push.Lanes(1), 1000); err != nil {
		t.Fatal(err)
	}
	for _, event := range []webhook.Event{webhook.EventScheduled, webhook.EventExpired} {
		if n := storetest.Ask[int](t, b.DB, `SELECT count(DISTINCT push_id) FROM webhook_deliveries WHERE webhook_id = $1 AND event = $2`, w.ID, string(event)); n != 1000 {
			t.Errorf("%s of %d pushes", event, n)
		}
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM webhook_deliveries`); n != 2000 {
		t.Errorf("%d events", n)
	}
}

// TestEvents_Payload checks that an event is a Standard Webhooks object with the push after the change.
func TestEvents_Payload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Hook(t)
	p := b.Booked(t, "a", 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
	p = b.MustRead(t, p)
	var got struct {
		Type      string
		Timestamp time.Time
		Data      map[string]any
	}
	text := storetest.Ask[string](t, b.DB, `SELECT payload FROM webhook_deliveries WHERE event = 'push.deferred' AND push_id = $1`, p.ID)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "push.deferred" || !got.Timestamp.Equal(p.UpdatedAt) || got.Data["id"] != p.ID.String() || got.Data["status"] != "scheduled" ||
		got.Data["last_error"] != "busy" || got.Data["next_attempt_at"] != p.NextAt.Format(time.RFC3339Nano) {
		t.Errorf("%s", text)
	}
	if _, ok := got.Data["message"]; ok {
		t.Errorf("the payload has the message: %s", text)
	}
}

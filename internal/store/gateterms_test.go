package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// sentThrough forges a send that ended so long ago.
func (b *bundle) sentThrough(t testing.TB, recipient, channel, category string, ago time.Duration) (ended time.Time) {
	t.Helper()
	return ask[time.Time](t, b.db, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, category, started_at, lease_until, ended_at, outcome)
		VALUES ($1, 1, $2, $3, $4, $5, $6, clock_timestamp() - $7::interval, clock_timestamp(), clock_timestamp() - $7::interval, 'delivered')
		RETURNING ended_at`, uuid.New(), b.tenant, push.RecipientKey(b.tenant, recipient), recipient, channel, category, ago)
}

// quietNow is a document with quiet hours that began an hour ago or more, and when they end: in an hour or more.
func quietNow(zone string, of *time.Location) (document string, until time.Time) {
	until = time.Now().In(of).Add(2 * time.Hour).Truncate(time.Hour)
	from := until.Add(-4 * time.Hour)
	return fmt.Sprintf(`{"quiet_hours": [{"name": "now", "from": %q, "until": %q, "zone": %q}]}`, from.Format("15:04"), until.Format("15:04"), zone), until
}

// TestGate_QuietHours: a push that is late into quiet hours waits for their end, or expires.
func TestGate_QuietHours(t *testing.T) {
	t.Parallel()
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		zone string
		of   *time.Location
		ttl  time.Duration
	}{
		"of all": {"UTC", time.UTC, 24 * time.Hour}, "of the recipient": {"recipient", kolkata, 24 * time.Hour}, "until it expires": {"UTC", time.UTC, 40 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.describe(t, "anna", `time_zone = 'Asia/Kolkata'`)
			d := draft(b.tenant, "anna", 0)
			d.Push.TTL = row.ttl
			p := book(t, b.Store, nil, d).Push
			document, until := quietNow(row.zone, row.of)
			b.adopt(t, 0, document) // which this store has not seen yet
			if p.ExpiresAt.Before(until) {
				until = p.ExpiresAt
			}
			if c := b.claim(t, "anna", nil); c.Outcome != booking.PutOff || !c.Push.NextAt.Equal(until) || !b.read(t, p).NextAt.Equal(until) {
				t.Fatalf("want %s: %+v", until, c)
			}
			if until.Equal(p.ExpiresAt) {
				b.exec(t, `UPDATE pushes SET expires_at = clock_timestamp(), next_at = clock_timestamp() WHERE id = $1`, p.ID)
				if c := b.claim(t, "anna", nil); c.Outcome != booking.TooLate {
					t.Fatalf("%+v", c)
				}
				b.wantStatus(t, p, push.Expired)
				return
			}
			b.exec(t, `UPDATE pushes SET next_at = clock_timestamp() WHERE id = $1`, p.ID)
			b.adopt(t, 0, `{}`) // and they are over
			b.claimed(t, p)
		})
	}
}

// TestGate_Scopes: at the gate, too, a rule counts only the sends that it is about.
func TestGate_Scopes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		document          string
		channel, category string
		want              booking.ClaimOutcome
	}{
		"a rule for the channel":             {`{"rules": [{"name": "log", "limit": 1, "window": "1h", "channels": ["log"]}]}`, "log", "", booking.PutOff},
		"a rule for another channel":         {`{"rules": [{"name": "sms", "limit": 1, "window": "1h", "channels": ["sms"]}]}`, "sms", "", booking.Claimed},
		"a rule that counts its channel":     {`{"rules": [{"name": "log", "limit": 1, "window": "1h", "channels": ["log"]}]}`, "sms", "", booking.Claimed},
		"a rule for the category":            {`{"rules": [{"name": "none", "limit": 1, "window": "1h", "categories": ["news"]}]}`, "sms", "news", booking.PutOff},
		"a rule that counts the category":    {`{"rules": [{"name": "none", "limit": 1, "window": "1h", "categories": ["news"]}]}`, "sms", "offers", booking.Claimed},
		"a category that does not count":     {`{"rules": [{"name": "hour", "limit": 1, "window": "1h"}], "categories": {"offers": {"counts": false}}}`, "sms", "offers", booking.Claimed},
		"a category with a place of its own": {`{"rules": [{"name": "hour", "limit": 2, "window": "1h"}], "categories": {"alerts": {"reserve": {"hour": 1}}}}`, "sms", "offers", booking.PutOff},
		"a category that bypasses":           {`{"rules": [{"name": "hour", "limit": 1, "window": "1h"}], "categories": {"news": {"bypass": true}}}`, "sms", "offers", booking.Claimed},
		"a month":                            {`{"rules": [{"name": "month", "limit": 1, "per": "month"}]}`, "sms", "", booking.PutOff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := draft(b.tenant, "anna", 0)
			d.Push.Category = "news"
			p := book(t, b.Store, nil, d).Push
			ended := b.sentThrough(t, "anna", row.channel, row.category, time.Millisecond)
			b.adopt(t, 0, row.document)
			c := b.claim(t, "anna", nil)
			if c.Outcome != row.want || c.Push.ID != p.ID {
				t.Fatalf("%+v", c)
			}
			if want := ended.Add(time.Hour); c.Outcome == booking.PutOff && name != "a month" && !c.Push.NextAt.Equal(want) {
				t.Errorf("put off to %s, want %s", c.Push.NextAt, want)
			}
		})
	}
}

// TestGate_OptedOut: who opts out after a push was booked does not get it. Another one is sent.
func TestGate_OptedOut(t *testing.T) {
	t.Parallel()
	for name, column := range map[string]string{
		"of all": `opt_out_all = true`, "of the channel": `opt_out_channels = '{sms,log}'`, "of the category": `opt_out_categories = '{offers,news}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			w := b.hook(t, push.EventCanceled)
			d := draft(b.tenant, "anna", 0)
			d.Push.Category = "news"
			p := book(t, b.Store, nil, d).Push
			bert := b.booked(t, "bert", 0)
			b.describe(t, "anna", column)
			if c := b.claim(t, "anna", nil); c.Outcome != booking.Unwanted || c.Push.ID != p.ID {
				t.Fatalf("%+v", c)
			}
			got := b.read(t, p)
			if got.Status != push.Canceled || got.LastError != booking.OptedOutReason || got.Gen != p.Gen+1 || len(got.Sends) > 0 {
				t.Errorf("%+v", got)
			}
			if n := ask[int](t, b.db, `SELECT count(*) FROM live WHERE push_id = $1`, p.ID); n != 0 {
				t.Error("it still waits")
			}
			if events := b.told(t, w, p); len(events) != 1 {
				t.Errorf("told %v", events)
			}
			if c := b.claim(t, "anna", nil); c.Outcome != booking.Nothing {
				t.Errorf("then %+v", c)
			}
			b.claimed(t, bert)
			b.audit(t, perMinute)
		})
	}
}

// TestGate_Address: the address is that which the recipient has when the push is sent.
func TestGate_Address(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.describe(t, "anna", `addresses = '{"log": "old"}'`)
	p := b.booked(t, "anna", 0)
	b.describe(t, "anna", `addresses = '{"log": "new", "sms": "other"}'`)
	if c := b.claimed(t, p); c.Push.To != "new" {
		t.Errorf("sent to %q", c.Push.To)
	}
	if got := b.read(t, p); got.To != "" {
		t.Errorf("kept %q with the push", got.To)
	}
}

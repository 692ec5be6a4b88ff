package attempts_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/webhook"
)

// TestGate_QuietHours checks that a push that is late into quiet hours waits for their end, or expires.
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
			b.MustDescribe(t, "anna", `time_zone = 'Asia/Kolkata'`)
			d := storetest.Draft(b.TenantID, "anna", 0)
			d.Push.TTL = row.ttl
			p := storetest.MustBook(t, b.Store, nil, d).Push
			document, until := storetest.QuietNow(row.zone, row.of)
			b.Adopt(t, 0, document) // this store has not read the policy yet
			if p.ExpiresAt.Before(until) {
				until = p.ExpiresAt
			}
			if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.PutOff || !c.Push.NextAt.Equal(until) || !b.MustRead(t, p).NextAt.Equal(until) {
				t.Fatalf("want %s: %+v", until, c)
			}
			if until.Equal(p.ExpiresAt) {
				b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp(), next_at = clock_timestamp() WHERE id = $1`, p.ID)
				if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.TooLate {
					t.Fatalf("%+v", c)
				}
				b.WantStatus(t, p, push.Expired)
				return
			}
			b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() WHERE id = $1`, p.ID)
			b.Adopt(t, 0, `{}`) // and they are over
			b.Claimed(t, p)
		})
	}
}

// TestGate_Scopes checks that a rule counts only the sends in its scope at the gate, too.
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
			d := storetest.Draft(b.TenantID, "anna", 0)
			d.Push.Category = "news"
			p := storetest.MustBook(t, b.Store, nil, d).Push
			ended := b.SentThrough(t, "anna", row.channel, row.category, time.Millisecond)
			b.Adopt(t, 0, row.document)
			c := b.MustClaim(t, "anna", nil)
			if c.Outcome != row.want || c.Push.ID != p.ID {
				t.Fatalf("%+v", c)
			}
			if want := ended.Add(time.Hour); c.Outcome == booking.PutOff && name != "a month" && !c.Push.NextAt.Equal(want) {
				t.Errorf("put off to %s, want %s", c.Push.NextAt, want)
			}
		})
	}
}

// TestGate_OptedOut checks that a recipient that opts out after a booking does not get the push. Another recipient
// does.
func TestGate_OptedOut(t *testing.T) {
	t.Parallel()
	for name, column := range map[string]string{
		"of all": `opt_out_all = true`, "of the channel": `opt_out_channels = '{sms,log}'`, "of the category": `opt_out_categories = '{offers,news}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			w := b.Hook(t, webhook.EventCanceled)
			d := storetest.Draft(b.TenantID, "anna", 0)
			d.Push.Category = "news"
			p := storetest.MustBook(t, b.Store, nil, d).Push
			bert := b.Booked(t, "bert", 0)
			b.MustDescribe(t, "anna", column)
			if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Unwanted || c.Push.ID != p.ID {
				t.Fatalf("%+v", c)
			}
			got := b.MustRead(t, p)
			if got.Status != push.Canceled || got.LastError != booking.OptedOutReason || got.Gen != p.Gen+1 || len(got.Sends) > 0 {
				t.Errorf("%+v", got)
			}
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live WHERE push_id = $1`, p.ID); n != 0 {
				t.Error("it still waits")
			}
			if events := b.EventsOf(t, w, p); len(events) != 1 {
				t.Errorf("told %v", events)
			}
			if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Nothing {
				t.Errorf("then %+v", c)
			}
			b.Claimed(t, bert)
			b.MustAudit(t, storetest.PerMinute)
		})
	}
}

// TestGate_Address checks that a push goes to the address that the recipient has at the time of sending.
func TestGate_Address(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.MustDescribe(t, "anna", `addresses = '{"log": "old"}'`)
	p := b.Booked(t, "anna", 0)
	b.MustDescribe(t, "anna", `addresses = '{"log": "new", "sms": "other"}'`)
	if c := b.Claimed(t, p); c.Push.To != "new" {
		t.Errorf("sent to %q", c.Push.To)
	}
	if got := b.MustRead(t, p); got.To != "" {
		t.Errorf("kept %q with the push", got.To)
	}
}

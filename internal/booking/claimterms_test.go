package booking_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// termsOf returns the terms of a document.
func termsOf(t testing.TB, document string) booking.Terms {
	t.Helper()
	var d policy.Document
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		t.Fatal(err)
	}
	terms, err := d.Compile([]string{"sms", "email"})
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// TestClaimState_OwnTerms: a push of anna by SMS, category news, is due at noon on a Tuesday and expires in two days.
func TestClaimState_OwnTerms(t *testing.T) {
	const day = 24 * time.Hour
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	sms, email := quota.Kind{Channel: "sms", Category: "news"}, quota.Kind{Channel: "email", Category: "offers"}
	send := func(k quota.Kind, ago time.Duration) quota.Booking {
		return quota.Booking{ID: uuid.New(), At: noon.Add(-ago), Kind: k}
	}
	const (
		night   = `{"quiet_hours": [{"name": "night", "from": "11:00", "until": "13:00"}]}`
		evening = `{"quiet_hours": [{"name": "evening", "from": "20:00", "until": "22:00", "zone": "recipient"}]}`
		smsHour = `{"rules": [{"name": "sms", "limit": 1, "window": "1h", "channels": ["sms"]}]}`
		newsDay = `{"rules": [{"name": "news", "limit": 2, "per": "day", "zone": "Asia/Kathmandu", "categories": ["news"]}]}`
		reserve = `{"rules": [{"name": "hour", "limit": 2, "window": "1h"}], "categories": {"alerts": {"reserve": {"hour": 1}}}}`
		bypass  = `{"rules": [{"name": "none", "limit": 0, "window": "1h"}], "categories": {"news": {"bypass": true}}, "quiet_hours": [{"name": "night", "from": "11:00", "until": "13:00"}]}`
		silent  = `{"rules": [{"name": "hour", "limit": 1, "window": "1h"}], "categories": {"offers": {"counts": false}}}`
		shadow  = `{"rules": [{"name": "trial", "limit": 0, "window": "1h", "shadow": true}]}`
	)
	for _, row := range []struct {
		name    string
		terms   string
		person  booking.Person
		sends   []quota.Booking
		at      time.Duration // time of the claim, after noon
		expires time.Duration // 0: in two days
		want    booking.ClaimOutcome
		wait    time.Duration // for Wait and PutOff: until when, after noon
	}{
		{name: "late into quiet hours", terms: night, want: booking.PutOff, wait: time.Hour},
		{name: "late into quiet hours, and it expires before their end", terms: night, expires: 30 * time.Minute, want: booking.PutOff, wait: 30 * time.Minute},
		{name: "expired in quiet hours", terms: night, at: 30 * time.Minute, expires: 30 * time.Minute, want: booking.TooLate},
		{name: "quiet hours end in a moment", terms: night, at: time.Hour - 1500*time.Millisecond, want: booking.Wait, wait: time.Hour},
		{name: "quiet hours end now", terms: night, at: time.Hour, want: booking.Claimed},
		{name: "quiet hours begin now", terms: night, at: 23 * time.Hour, want: booking.PutOff, wait: 25 * time.Hour},
		{name: "quiet hours begin in a moment", terms: night, at: 23*time.Hour - 1, want: booking.Claimed},
		{name: "quiet hours of somewhere else", terms: evening, want: booking.Claimed},
		{name: "quiet hours of the recipient", terms: evening, person: booking.Person{Person: quota.Person{Zone: tokyo}}, want: booking.PutOff, wait: time.Hour},

		{name: "a rule for its channel, and a send through it", terms: smsHour, sends: []quota.Booking{send(sms, 10*time.Minute)}, want: booking.PutOff, wait: 50 * time.Minute},
		{name: "a rule for its channel, and a send through another", terms: smsHour, sends: []quota.Booking{send(email, 10*time.Minute)}, want: booking.Claimed},
		{name: "a day in Kathmandu is full", terms: newsDay, sends: []quota.Booking{send(sms, 17*time.Hour), send(sms, time.Hour)}, want: booking.PutOff, wait: 6*time.Hour + 15*time.Minute},
		{name: "one of its sends was a day before", terms: newsDay, sends: []quota.Booking{send(sms, 17*time.Hour+45*time.Minute+1), send(sms, time.Hour)}, want: booking.Claimed},
		{name: "one of its sends was of another category", terms: newsDay, sends: []quota.Booking{send(email, 2*time.Hour), send(sms, time.Hour)}, want: booking.Claimed},
		{name: "the last place is reserved for others", terms: reserve, sends: []quota.Booking{send(email, 10*time.Minute)}, want: booking.PutOff, wait: 50 * time.Minute},
		{name: "nothing refuses its category", terms: bypass, want: booking.Claimed},
		{name: "what was sent does not count", terms: silent, sends: []quota.Booking{send(email, time.Minute)}, want: booking.Claimed},
		{name: "a rule that only watches", terms: shadow, want: booking.Claimed},
		{
			name: "a limit of her own", terms: smsHour, person: booking.Person{Person: quota.Person{Limits: map[string]int{"sms": 2}}},
			sends: []quota.Booking{send(sms, 10*time.Minute)}, want: booking.Claimed,
		},

		{name: "opted out of the channel", terms: shadow, person: booking.Person{OptOuts: booking.OptOuts{Channels: []string{"sms"}}}, want: booking.Unwanted},
		{name: "opted out of the category, which bypasses all else", terms: bypass, person: booking.Person{OptOuts: booking.OptOuts{Categories: []string{"news"}}}, want: booking.Unwanted},
		{name: "opted out of everything, in quiet hours", terms: night, person: booking.Person{OptOuts: booking.OptOuts{All: true}}, want: booking.Unwanted},
		{name: "opted out of others", terms: shadow, person: booking.Person{OptOuts: booking.OptOuts{Channels: []string{"email"}, Categories: []string{"offers", ""}}}, want: booking.Claimed},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := setup(t).push("anna", 0)
			p.Channel, p.Category, p.NextAt, p.ExpiresAt = sms.Channel, sms.Category, p.SendAt, noon.Add(2*day)
			if row.expires != 0 {
				p.ExpiresAt = noon.Add(row.expires)
			}
			s := booking.ClaimState{Due: p, Sends: row.sends, Terms: termsOf(t, row.terms), Person: row.person}
			got := s.Decide(booking.ClaimOrder{Policy: quota.Policy{{Name: "file", Limit: 0, Window: day}}, Lease: time.Minute, Token: uuid.New()}, noon.Add(row.at))
			if got.Outcome != row.want || got.Push.ID != p.ID {
				t.Fatalf("%+v", got)
			}
			if want := noon.Add(row.wait); row.want == booking.PutOff && !got.Push.NextAt.Equal(want) || row.want == booking.Wait && got.Wait != row.wait-row.at {
				t.Errorf("until %s, or in %s, want %s", got.Push.NextAt, got.Wait, want)
			}
		})
	}
}

// TestClaimState_Address checks that a push without an address takes the recipient's current one.
func TestClaimState_Address(t *testing.T) {
	anna := booking.Person{Addresses: map[string]string{"sms": "+4512345678", "email": "anna@example.com"}}
	for _, row := range []struct{ channel, to, want string }{
		{"sms", "", "+4512345678"}, {"email", "", "anna@example.com"}, {"push", "", ""}, {"sms", "+4587654321", "+4587654321"},
	} {
		p := setup(t).push("anna", 0)
		p.Channel, p.To, p.NextAt, p.ExpiresAt, p.Status = row.channel, row.to, p.SendAt, noon.Add(hour), push.Scheduled
		s := booking.ClaimState{Due: p, Person: anna}
		if got := s.Decide(booking.ClaimOrder{Lease: time.Minute, Token: uuid.New()}, noon); got.Outcome != booking.Claimed || got.Push.To != row.want {
			t.Errorf("through %s to %q: %+v", row.channel, row.to, got)
		}
	}
}

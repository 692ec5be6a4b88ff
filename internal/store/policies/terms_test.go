package policies_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// setPolicy gives the tenant a policy from now on; an empty document removes it.
func (b *bundle) setPolicy(t testing.TB, document string) {
	t.Helper()
	b.Adopt(t, 0, document)
}

const noRules = `{"rules": []}`

// TestTerms_Book checks that a policy applies to all later bookings, in every process, until it is removed.
func TestTerms_Book(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stores := []*store.Store{b.Store, storetest.OpenURL(t, b.URL, store.Config{})}
	want := func(name string, outcome booking.Outcome) {
		t.Helper()
		for i, st := range stores {
			if v := storetest.MustBook(t, st, storetest.ThreeRules, storetest.Draft(b.TenantID, "anna", time.Hour)); v.Outcome != outcome {
				t.Errorf("%s, store %d: outcome %v, want %v", name, i, v.Outcome, outcome)
			}
		}
	}
	b.Booked(t, "anna", time.Hour)
	want("the file's policy", booking.NoPlace)
	b.setPolicy(t, noRules)
	want("no rules", booking.Booked)
	b.setPolicy(t, `{"rules": [{"name": "log-day", "limit": 1, "window": "24h", "channels": ["log"]}]}`)
	want("a rule for this channel", booking.NoPlace)
	b.setPolicy(t, `{"rules": [{"name": "sms-day", "limit": 1, "window": "24h", "channels": ["sms"]}]}`)
	want("a rule for another channel", booking.Booked)
	b.setPolicy(t, "")
	want("the file's policy again", booking.NoPlace)
}

// TestTerms_Move checks that the policy in force decides a move, even if it reaches further than the one before.
func TestTerms_Move(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Booked(t, "anna", time.Hour)
	p := b.Booked(t, "anna", 90*time.Hour)
	b.setPolicy(t, `{"rules": [{"name": "month", "limit": 1, "window": "720h"}]}`)
	p.SendAt = p.SendAt.Add(time.Hour)
	v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: storetest.ThreeRules})
	if err != nil || v.Outcome != booking.NoPlace || v.Quota.Violations[0].Rule.Name != "month" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestTerms_BookingsBetween checks that BookingsBetween returns the terms in force, and the kinds of the bookings if the
// terms need them.
func TestTerms_BookingsBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Booked(t, "anna", time.Hour)
	who := quota.Recipient{Tenant: b.TenantID, ID: "anna"}
	glance := func() (booking.Held, booking.Standing) {
		t.Helper()
		held, of, all, err := b.BookingsBetween(t.Context(), who, storetest.ThreeRules, storetest.Began, storetest.Began.Add(2*time.Hour))
		if err != nil || !all || len(held) != 1 {
			t.Fatalf("%v, %v, %v", held, all, err)
		}
		again, err := b.Standing(t.Context(), who, storetest.ThreeRules)
		if err != nil || again.Terms.Plain() != of.Terms.Plain() || again.Person.OptOuts.All != of.Person.OptOuts.All {
			t.Errorf("%+v instead of %+v, %v", again, of, err)
		}
		return held[0], of
	}
	if held, of := glance(); held.Kind != (quota.Kind{}) || !of.Terms.Plain() || of.Terms.Reach() != 24*time.Hour {
		t.Errorf("%+v, %+v", held, of)
	}
	b.setPolicy(t, `{"rules": [{"name": "week", "limit": 9, "per": "week", "channels": ["log"]}]}`)
	b.MustDescribe(t, "anna", `opt_out_all = true`)
	if held, of := glance(); held.Kind != (quota.Kind{Channel: "log"}) || of.Terms.Plain() || !of.Person.OptOuts.All {
		t.Errorf("%+v, %+v", held, of)
	}
}

// TestPerson_Book checks that a recipient's description decides, beside the policy.
func TestPerson_Book(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		set  string
		want booking.Outcome
	}{
		"nothing is known":              {`attributes = '{}'`, booking.NoPlace},
		"opted out of everything":       {`opt_out_all = true`, booking.OptedOut},
		"opted out of the channel":      {`opt_out_channels = '{sms,log}'`, booking.OptedOut},
		"opted out of another channel":  {`opt_out_channels = '{sms}'`, booking.NoPlace},
		"opted out of the category":     {`opt_out_categories = '{news}'`, booking.OptedOut},
		"opted out of another category": {`opt_out_categories = '{receipts}'`, booking.NoPlace},
		"limits of their own":           {`limits = '{"per-minute": 2, "none-such": 0}'`, booking.Booked},
		"a limit of none":               {`limits = '{"per-day": 0}'`, booking.NoPlace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Booked(t, "anna", time.Hour)
			b.MustDescribe(t, "anna", row.set)
			d := storetest.Draft(b.TenantID, "anna", time.Hour)
			d.Push.Category = "news"
			if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, d); v.Outcome != row.want {
				t.Errorf("outcome %v, want %v", v.Outcome, row.want)
			}
		})
	}
}

// TestPerson_Address checks that a channel with addresses gets the recipient's address as it is at the time of sending.
func TestPerson_Address(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := storetest.Draft(b.TenantID, "anna", 0)
	d.NeedsAddress = true
	if v := storetest.MustBook(t, b.Store, nil, d); v.Outcome != booking.NoAddress {
		t.Errorf("without one: %v", v.Outcome)
	}
	b.MustDescribe(t, "anna", `addresses = '{"log": "first"}'`)
	if v := storetest.MustBook(t, b.Store, nil, d); v.Outcome != booking.Booked || v.Push.To != "" {
		t.Fatalf("%+v", v)
	}
	b.MustDescribe(t, "anna", `addresses = '{"log": "second"}'`)
	if c := b.Claimed(t, d.Push); c.Push.To != "second" {
		t.Errorf("sent to %q", c.Push.To)
	}
}

// TestClaim_Unwanted checks that a due push is canceled if the recipient has opted out of it since.
func TestClaim_Unwanted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	b.MustDescribe(t, "anna", `opt_out_channels = '{log}'`)
	if c := b.MustClaim(t, "anna", storetest.ThreeRules); c.Outcome != booking.Unwanted || c.Push.ID != p.ID {
		t.Fatalf("%+v", c)
	}
	if got := b.MustRead(t, p); got.Status != push.Canceled || got.LastError != booking.OptedOutReason || got.Attempts != 0 {
		t.Errorf("%+v", got)
	}
	b.MustAudit(t, nil)
}

// TestClaim_OwnTerms checks that the gate tests actual sends by the tenant's own policy.
func TestClaim_OwnTerms(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		policy, set string
		want        booking.ClaimOutcome
	}{
		"the file's":                       {"", "", booking.PutOff},
		"no rules":                         {noRules, "", booking.Claimed},
		"a rule for the category":          {`{"rules": [{"name": "news", "limit": 1, "window": "1h", "categories": ["news"]}]}`, "", booking.PutOff},
		"a rule for another category":      {`{"rules": [{"name": "other", "limit": 0, "window": "1h", "categories": ["other"]}]}`, "", booking.Claimed},
		"limits of their own":              {"", `limits = '{"per-minute": 2}'`, booking.Claimed},
		"quiet hours for another category": {`{"rules": [], "quiet_hours": [{"name": "q", "from": "00:00", "until": "23:59", "categories": ["other"]}]}`, "", booking.Claimed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for range 2 {
				d := storetest.Draft(b.TenantID, "anna", 0)
				d.Push.Category = "news"
				storetest.MustBook(t, b.Store, nil, d)
			}
			first := b.MustClaim(t, "anna", nil)
			b.MustFinish(t, first, storetest.Sent)
			if row.policy != "" {
				b.setPolicy(t, row.policy)
			}
			if row.set != "" {
				b.MustDescribe(t, "anna", row.set)
			}
			if c := b.MustClaim(t, "anna", storetest.ThreeRules); c.Outcome != row.want {
				t.Errorf("%+v, want %v", c, row.want)
			}
		})
	}
}

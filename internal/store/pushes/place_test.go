package pushes_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// crowd books drafts concurrently through two stores, as two API processes would, and returns the decisions in the
// drafts' order.
func (b *bundle) crowd(t testing.TB, policy quota.Policy, drafts ...booking.Draft) []booking.Decision {
	t.Helper()
	stores := []*store.Store{b.Store, storetest.OpenURL(t, b.URL, store.Config{})}
	decisions := make([]booking.Decision, len(drafts))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, d := range drafts {
		wg.Go(func() {
			<-start
			v, err := stores[i%2].Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: policy})
			if err != nil {
				t.Error(err)
				return
			}
			decisions[i] = v[0]
		})
	}
	close(start)
	wg.Wait()
	return decisions
}

// TestBook_OnePlace checks that 64 concurrent submits fill exactly the free times of a policy: one, three or none.
func TestBook_OnePlace(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		policy quota.Policy
		places int
	}{
		"one per minute":  {quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}, 1},
		"three per hour":  {quota.Policy{{Name: "hour", Limit: 3, Window: time.Hour}}, 3},
		"none, whichever": {quota.Policy{{Name: "never", Limit: 0, Window: time.Minute}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var drafts []booking.Draft
			for i := range 64 {
				drafts = append(drafts, storetest.Draft(b.TenantID, "anna", time.Hour+time.Duration(i%30)*time.Second))
			}
			decisions := b.crowd(t, row.policy, drafts...)
			if n := storetest.Outcomes(decisions); n[booking.Booked] != row.places || n[booking.NoPlace] != 64-row.places {
				t.Errorf("decisions %v", n)
			}
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID); n != row.places {
				t.Errorf("%d rows", n)
			}
			for _, v := range decisions {
				if v.Outcome == booking.NoPlace && v.Quota.Allowed() {
					t.Errorf("refused, and the view does not show why: %+v", v)
				}
			}
		})
	}
}

// TestBook_Concurrent checks on 300 concurrent submits that no time is booked twice, and that no refused time was free.
func TestBook_Concurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	policy := quota.Policy{{Name: "a", Limit: 1, Window: 10 * time.Second}, {Name: "b", Limit: 3, Window: time.Minute}}
	var drafts []booking.Draft
	for range 300 {
		d := storetest.Draft(b.TenantID, []string{"anna", "bert"}[rand.N(2)], time.Hour+time.Duration(rand.N(300))*time.Second)
		drafts = append(drafts, d)
	}
	decisions := b.crowd(t, policy, drafts...)
	b.MustAudit(t, policy)
	for i, v := range decisions {
		p := drafts[i].Push
		held, _, err := b.Bookings(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: p.Recipient}, p.SendAt.Add(-time.Hour), p.SendAt.Add(time.Hour), booking.MaxRead, false)
		if err != nil {
			t.Fatal(err)
		}
		var bookings []quota.Booking
		found := false
		for _, h := range held {
			bookings = append(bookings, h.Booking)
			found = found || h.ID == p.ID
		}
		if found != (v.Outcome == booking.Booked) {
			t.Errorf("%s: outcome %d, in the table: %v", p.ID, v.Outcome, found)
		}
		if v.Outcome == booking.NoPlace && policy.Allows(quota.NewTimeline(bookings), p.SendAt) {
			t.Errorf("%s was refused at %s, which is free", p.ID, p.SendAt)
		}
	}
	if n := storetest.Outcomes(decisions); n[booking.Booked] < 10 || n[booking.NoPlace] < 100 {
		t.Errorf("decisions %v: too few to show anything", n)
	}
}

// TestBook_StatesThatCount checks that pushes that are scheduled, being sent or sent count against the limit, and that
// others do not.
func TestBook_StatesThatCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	policy := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}
	for _, status := range push.Statuses {
		recipient := string(status)
		p := b.InStatus(t, recipient, status)
		d := storetest.Draft(b.TenantID, recipient, 0)
		d.Push.SendAt = p.SendAt.Add(30 * time.Second)
		if v := storetest.MustBook(t, b.Store, policy, d); (v.Outcome == booking.NoPlace) != slices.Contains([]push.Status{push.Scheduled, push.Sending, push.Sent}, status) {
			t.Errorf("beside one that is %s: outcome %d", status, v.Outcome)
		}
	}
}

// TestBook_UsageIncludesPush checks that the usage of a new push counts the push itself.
func TestBook_UsageIncludesPush(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(b.TenantID, "anna", time.Duration(i)*time.Minute+time.Hour))
		got := [3]int{v.Usage[0].Used, v.Usage[1].Used, v.Usage[2].Used}
		if want := [3]int{1, i + 1, i + 1}; got != want {
			t.Errorf("push %d: used %v, want %v", i, got, want)
		}
	}
	if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(b.TenantID, "anna", time.Hour+5*time.Minute)); v.Outcome != booking.NoPlace || v.Usage != nil {
		t.Errorf("the sixth within an hour: %+v", v)
	}
}

func TestBook_SameRecipientOfTwoTenants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 {
		if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(uuid.New(), "anna", time.Hour)); v.Outcome != booking.Booked {
			t.Errorf("%+v", v)
		}
	}
}

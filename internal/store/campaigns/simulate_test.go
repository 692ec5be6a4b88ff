package campaigns_test

import (
	"maps"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestCampaignsOf checks that the campaigns of some bookings are found, whatever their states and weeks, and whether
// the tenant has started a campaign.
func TestCampaignsOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	whole := push.Lane{Last: push.Shards - 1}
	if now, started, err := b.CampaignClock(t.Context(), b.TenantID); err != nil || started || time.Since(now).Abs() > time.Minute {
		t.Errorf("%s, %v, %v", now, started, err)
	}
	one, two := b.MustCampaign(t, "anna"), b.MustCampaign(t, "anna")
	if _, started, err := b.CampaignClock(t.Context(), b.TenantID); err != nil || !started {
		t.Errorf("%v, %v", started, err)
	}
	if _, started, err := b.CampaignClock(t.Context(), uuid.New()); err != nil || started {
		t.Errorf("a stranger: %v, %v", started, err)
	}
	held := func(in time.Duration, campaign uuid.UUID) quota.Booking {
		d := storetest.Draft(b.TenantID, "anna", in)
		d.Push.Campaign = campaign
		v := storetest.MustBook(t, b.Store, nil, d)
		return booking.Of(&v.Push)
	}
	soon, far, single := held(time.Hour, one.ID), held(30*24*time.Hour, two.ID), held(2*time.Hour, uuid.Nil)
	b.Exec(t, `UPDATE pushes SET status = 'sent' WHERE id = $1`, soon.ID)
	of, err := b.CampaignsOf(t.Context(), b.TenantID, whole, []quota.Booking{far, soon, single, {ID: uuid.New(), At: soon.At}})
	if want := map[uuid.UUID]uuid.UUID{soon.ID: one.ID, far.ID: two.ID}; err != nil || !maps.Equal(of, want) {
		t.Errorf("%v, %v, want %v", of, err, want)
	}
	if of, err := b.CampaignsOf(t.Context(), b.TenantID, whole, nil); err != nil || len(of) > 0 {
		t.Errorf("%v, %v", of, err)
	}
	names, err := b.CampaignNames(t.Context(), b.TenantID, []uuid.UUID{one.ID, two.ID, one.ID})
	if err != nil || len(names) != 2 || names[one.ID] != "sale" {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := b.CampaignNames(t.Context(), uuid.New(), []uuid.UUID{one.ID}); err != nil || len(names) > 0 {
		t.Errorf("a stranger's: %v, %v", names, err)
	}
}

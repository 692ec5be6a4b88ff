package campaign_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// crowd returns a draft with the given number of recipients. A third of them have a push at a time.
func (b *bundle) crowd(t tester, recipients int, at time.Time) broadcast.Campaign {
	t.Helper()
	tenant := b.newTenant(t)
	var (
		lines []broadcast.AudienceLine
		held  []push.Push
	)
	for i := range recipients {
		name := fmt.Sprintf("user-%d", i)
		lines = append(lines, broadcast.AudienceLine{Recipient: name})
		if i%3 == 0 {
			held = append(held, push.Push{Content: push.Content{Recipient: name, Channel: "sms"}, Tenant: tenant, SendAt: at})
		}
	}
	b.holds(t, held...)
	return b.drafted(t, broadcast.Campaign{Tenant: tenant}, lines...)
}

// TestCapacity_Sample: a capacity reads as many recipients as requested, over chunks and lanes, and the same ones each
// time.
func TestCapacity_Sample(t *testing.T) {
	t.Parallel()
	b := setup(t, quota.Rule{Name: "per-hour", Limit: 1, Window: time.Hour})
	hour := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Hour)
	c := b.crowd(t, 900, hour)
	q := campaign.CapacityQuery{From: hour.Add(-2 * time.Hour), Until: hour.Add(3 * time.Hour), Zone: time.UTC}
	for _, sample := range []int{1, 250, 251, 700, 900, 5000} {
		q.Sample = sample
		found, err := b.Capacity(t.Context(), c.Tenant, c.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Capacity(t.Context(), c.Tenant, c.ID, q)
		if err != nil || fmt.Sprint(found) != fmt.Sprint(again) {
			t.Errorf("%+v, and then %+v, %v", found, again, err)
		}
		if n := min(sample, 900); found.Sample != n || found.Recipients != 900 || len(found.Free) != 5 || found.Free[0] != n || found.Free[4] != n {
			t.Errorf("of %d: %+v", n, found)
		}
		if sample >= 900 && found.Free[2] != 600 || sample == 700 && (found.Free[2] < 420 || found.Free[2] > 520) {
			t.Errorf("of %d, %d have a place", sample, found.Free[2])
		}
	}
	q.Until = time.Now().Add(-time.Hour)
	if _, err := b.Capacity(t.Context(), c.Tenant, c.ID, q); !errors.Is(err, campaign.ErrNoHour) {
		t.Error(err)
	}
}

// BenchmarkCapacity reads the largest sample, and the longest time, that the API allows.
func BenchmarkCapacity(b *testing.B) {
	s := setup(b, quota.Rule{Name: "per-minute", Limit: 1, Window: time.Minute}, quota.Rule{Name: "per-hour", Limit: 5, Window: time.Hour}, quota.Rule{Name: "per-day", Limit: 10, Window: 24 * time.Hour})
	hour := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Hour)
	c := s.crowd(b, 6000, hour)
	q := campaign.CapacityQuery{From: hour, Until: hour.Add(62 * 24 * time.Hour), Sample: 5000, Zone: time.UTC}
	for b.Loop() {
		if found, err := s.Capacity(b.Context(), c.Tenant, c.ID, q); err != nil || found.Sample != 5000 {
			b.Fatal(found, err)
		}
	}
}

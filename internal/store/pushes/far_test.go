package pushes_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestBook_FarFreeTime checks that a push that may be deferred gets the next free time, even weeks later: alone, in a
// batch, and in a campaign.
func TestBook_FarFreeTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	daily := quota.Policy{{Name: "per-day", Limit: 1, Window: 24 * time.Hour}}
	const days = 20
	for _, who := range []string{"anna", "bert", "carl", "dora"} {
		for day := range days {
			b.Booked(t, who, time.Hour+time.Duration(day)*24*time.Hour)
		}
	}
	free := storetest.Began.Add(time.Hour + days*24*time.Hour)
	deferred := func(who string) booking.Draft {
		d := storetest.Draft(b.TenantID, who, time.Hour)
		d.Latest = storetest.Began.Add(100 * 24 * time.Hour)
		return d
	}
	want := func(d booking.Decision, at time.Time) {
		t.Helper()
		if d.Outcome != booking.Booked || !d.Push.SendAt.Equal(at) {
			t.Errorf("outcome %d at %s, want it booked at %s", d.Outcome, d.Push.SendAt, at)
		}
	}
	for name, drafts := range map[string][]booking.Draft{"alone": {deferred("anna")}, "in a batch": {deferred("bert"), deferred("bert"), deferred("carl")}} {
		t.Run(name, func(t *testing.T) {
			made, err := b.Book(t.Context(), booking.Order{Drafts: drafts, Policy: daily, Now: storetest.Began})
			if err != nil {
				t.Fatal(err)
			}
			want(made[0], free)
			if len(made) > 1 {
				want(made[1], free.Add(24*time.Hour))
				want(made[2], free)
			}
		})
	}
	c := b.MustCampaign(t, "dora", "emil")
	o := storetest.ChunkOf(c, daily)
	o.Plan = func(line broadcast.AudienceLine, _ booking.Standing, _ json.RawMessage) (booking.Draft, error) {
		d := deferred(line.Recipient)
		d.Push.Campaign = c.ID
		return d, nil
	}
	decided := map[string]booking.Decision{}
	for _, o.Shards = range b.CampaignLanes() {
		o.After = campaigns.BeforeShards(o.Shards)
		done, err := o.Decide(t.Context(), b.CampaignChunk)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range done.Decided {
			decided[d.Recipient] = d.Decision
		}
	}
	want(decided["dora"], free)
	want(decided["emil"], storetest.Began.Add(time.Hour))
	b.MustAudit(t, daily)
}

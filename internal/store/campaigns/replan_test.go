package campaigns_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestBookCampaignChunk_ChangedWhilePlanned checks that a chunk takes no lock while it is planned, and that it does not
// book by a plan that is out of date by then: what has happened meanwhile counts.
func TestBookCampaignChunk_ChangedWhilePlanned(t *testing.T) {
	t.Parallel()
	type outcome struct {
		status  broadcast.Status
		decided int64  // lines that this chunk has decided
		pushes  int64  // of the campaign
		planned int    // how often the line was planned
		last    string // the attributes of the last plan
	}
	for name, x := range map[string]struct {
		change func(t *testing.T, b *bundle, o campaign.Chunk)
		want   outcome
	}{
		"nothing": {func(*testing.T, *bundle, campaign.Chunk) {}, outcome{broadcast.Starting, 1, 1, 1, ""}},
		"other attributes": {func(t *testing.T, b *bundle, _ campaign.Chunk) {
			b.Say(t, booking.Description{Recipient: "anna", Attributes: json.RawMessage(`{"city":"Bonn"}`)})
		}, outcome{broadcast.Starting, 1, 1, 2, `{"city": "Bonn"}`}},
		"another zone": {func(t *testing.T, b *bundle, _ campaign.Chunk) {
			b.Say(t, booking.Description{Recipient: "anna", TimeZone: "Asia/Tokyo"})
		}, outcome{broadcast.Starting, 1, 1, 2, `{}`}},
		"erased": {func(t *testing.T, b *bundle, _ campaign.Chunk) {
			_, err := b.Erase(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"})
			if err != nil {
				t.Error(err)
			}
		}, outcome{broadcast.Starting, 1, 0, 1, ""}}, // as canceled
		"decided by another worker": {func(t *testing.T, b *bundle, o campaign.Chunk) {
			if _, err := o.Decide(t.Context(), b.CampaignChunk); err != nil {
				t.Error(err)
			}
		}, outcome{broadcast.Starting, 0, 1, 1, ""}},
		"canceled": {func(t *testing.T, b *bundle, o campaign.Chunk) {
			b.Exec(t, `UPDATE campaigns SET status = 'canceling' WHERE id = $1`, o.Campaign.ID)
		}, outcome{broadcast.Canceling, 0, 0, 1, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := b.MustCampaign(t, "anna")
			o := storetest.ChunkOf(c, storetest.ThreeRules)
			o.Shards = b.laneOf("anna")
			o.After = campaigns.BeforeShards(o.Shards)
			var got outcome
			plan, other := o.Plan, o
			o.Plan = func(line broadcast.AudienceLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
				if got.planned++; got.planned == 1 {
					x.change(t, b, other)
				}
				got.last = string(attributes)
				return plan(line, of, attributes)
			}
			done, err := o.Decide(t.Context(), b.CampaignChunk)
			if err != nil {
				t.Fatal(err)
			}
			got.status, got.decided = done.Status, int64(len(done.Decided))
			got.pushes = storetest.Ask[int64](t, b.DB, `SELECT count(*) FROM pushes WHERE campaign_id = $1`, c.ID)
			if got != x.want {
				t.Errorf("got %+v, want %+v", got, x.want)
			}
		})
	}
}

// TestBookCampaignChunk_ChangedAllTheTime checks that a chunk gets on although planning more than one line always takes
// longer than a description lasts.
func TestBookCampaignChunk_ChangedAllTheTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := storetest.People(60)
	c := b.MustCampaign(t, all...)
	o := storetest.ChunkOf(c, storetest.ThreeRules)
	plan, last, changes := o.Plan, "", 0
	o.Plan = func(line broadcast.AudienceLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
		if last != "" && last != line.Recipient {
			changes++
			b.Say(t, booking.Description{Recipient: last, Attributes: json.RawMessage(fmt.Sprintf(`{"seen":%d}`, changes))})
		}
		last = line.Recipient
		return plan(line, of, attributes)
	}
	outcomes := b.BookAll(t, o, func(o campaign.Chunk) (campaign.Done, error) {
		last = ""
		return o.Decide(t.Context(), b.CampaignChunk)
	})
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE campaign_id = $1`, c.ID); n != len(all) || len(outcomes) != len(all) || changes == 0 {
		t.Errorf("%d pushes and %d outcomes of %d recipients, whose descriptions changed %d times", n, len(outcomes), len(all), changes)
	}
}

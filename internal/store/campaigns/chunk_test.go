package campaigns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestBookCampaignChunk_Outcomes checks that each recipient of a campaign is decided once, as a trial has predicted,
// and that the outcome is recorded.
func TestBookCampaignChunk_Outcomes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full := b.Booked(t, "full", time.Hour)
	b.Say(t, booking.Description{Recipient: "out", OptOuts: booking.OptOuts{All: true}})
	c := b.MustCampaign(t, "anna", "full", "out", "bad one", "erased")
	b.Exec(t, `UPDATE campaign_recipients SET recipient = '' WHERE recipient = 'erased' AND tenant_id = $1`, b.TenantID)
	o := storetest.ChunkOf(c, storetest.ThreeRules)
	want := map[string]string{
		"anna": "scheduled  []", "full": "refused quota-exceeded [per-minute]", "out": "opted_out opted-out []", "bad one": "invalid is bad []", "": "canceled erased []",
	}
	try := func(o campaign.Chunk) (campaign.Done, error) {
		return o.Decide(t.Context(), b.CampaignTrial)
	}
	if got := b.BookAll(t, o, try); !maps.Equal(got, want) {
		t.Errorf("a trial says %v, want %v", got, want)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID); n != 1 {
		t.Errorf("a trial has booked %d pushes", n-1)
	}
	book := func(o campaign.Chunk) (campaign.Done, error) {
		return o.Decide(t.Context(), b.CampaignChunk)
	}
	if got := b.BookAll(t, o, book); !maps.Equal(got, want) {
		t.Errorf("booked %v, want %v", got, want)
	}
	if got := b.BookAll(t, o, book); len(got) > 0 {
		t.Errorf("decided again: %v", got)
	}
	counts := storetest.Ask[string](t, b.DB, `SELECT concat_ws(' ', booked, deferred, refused, opted_out, invalid, dropped) FROM campaigns WHERE tenant_id = $1`, b.TenantID)
	if counts != "1 0 1 1 1 1" {
		t.Errorf("counts: %s", counts)
	}
	kept := storetest.Ask[string](t, b.DB, `SELECT rules[1] || ' ' || (conflicts->0->>'id') FROM campaign_recipients WHERE recipient = 'full' AND tenant_id = $1`, b.TenantID)
	if kept != "per-minute "+full.ID.String() {
		t.Errorf("kept: %s", kept)
	}
	pushed := storetest.Ask[string](t, b.DB, `SELECT p.recipient || ' ' || (p.campaign_id = l.campaign_id) || ' ' || l.phase FROM campaign_recipients r
		JOIN pushes p ON p.id = r.push_id JOIN live l ON l.push_id = p.id WHERE r.outcome = 'booked' AND r.tenant_id = $1`, b.TenantID)
	if pushed != "anna true 5" {
		t.Errorf("pushed: %s", pushed)
	}
}

// TestBookCampaignChunk_Two checks that two workers that book a campaign at once decide each recipient once, and that
// two campaigns for the same recipients share the quota.
func TestBookCampaignChunk_Two(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 1200
	audience := storetest.People(n)
	both := []broadcast.Campaign{b.MustCampaign(t, audience...), b.MustCampaign(t, audience...)}
	var all sync.WaitGroup
	for _, c := range both {
		for range 2 {
			st := storetest.OpenURL(t, b.URL, store.Config{})
			all.Go(func() {
				b.BookAll(t, storetest.ChunkOf(c, storetest.ThreeRules), func(o campaign.Chunk) (campaign.Done, error) {
					return o.Decide(t.Context(), st.CampaignChunk)
				})
			})
		}
	}
	all.Wait()
	if got := storetest.Ask[string](t, b.DB, `SELECT concat_ws(' ', sum(booked), sum(refused)) FROM campaigns WHERE tenant_id = $1`, b.TenantID); got != fmt.Sprintf("%d %d", n, n) {
		t.Errorf("booked and refused: %s", got)
	}
	if got := storetest.Ask[int](t, b.DB, `SELECT count(DISTINCT recipient) FROM pushes WHERE tenant_id = $1`, b.TenantID); got != n {
		t.Errorf("%d recipients have pushes", got)
	}
	for _, c := range both {
		if got := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM campaign_recipients WHERE campaign_id = $1 AND outcome IS NOT NULL`, c.ID); got != n {
			t.Errorf("%d are decided", got)
		}
	}
	b.MustAudit(t, storetest.ThreeRules)
}

// TestBookCampaignChunk_Held checks that nothing is booked once a campaign no longer is starting.
func TestBookCampaignChunk_Held(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.MustCampaign(t, "anna")
	b.Exec(t, `UPDATE campaigns SET status = 'pausing' WHERE tenant_id = $1`, b.TenantID)
	o := storetest.ChunkOf(c, storetest.ThreeRules)
	o.Shards = b.laneOf("anna")
	o.After = campaigns.BeforeShards(o.Shards)
	done, err := o.Decide(t.Context(), b.CampaignChunk)
	if err != nil || done.Status != broadcast.Pausing || len(done.Decided) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestBookCampaignChunk_Slow checks that a chunk ends early if its lines are slow to plan, and that the next chunk
// continues.
func TestBookCampaignChunk_Slow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.MustCampaign(t, storetest.People(20)...)
	o := storetest.ChunkOf(c, nil)
	plan := o.Plan
	large := json.RawMessage(`{"title":"` + strings.Repeat("a", 1<<20) + `"}`)
	o.Plan = func(line broadcast.AudienceLine, of booking.Standing, a json.RawMessage) (booking.Draft, error) {
		d, err := plan(line, of, a)
		d.Push.Message = large
		return d, err
	}
	chunks := 0
	got := b.BookAll(t, o, func(o campaign.Chunk) (campaign.Done, error) {
		chunks++
		return o.Decide(t.Context(), b.CampaignChunk)
	})
	if len(got) != 20 || chunks < len(b.CampaignLanes())+1 && len(b.CampaignLanes()) < 3 {
		t.Errorf("%d recipients in %d chunks", len(got), chunks)
	}
}

// TestBookCampaignChunk_Room checks that a chunk fails if a push moves to an uncounted day, and that the error names
// the day. Once it is counted, caps refuse.
func TestBookCampaignChunk_Room(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.MustCampaign(t, "anna")
	o := storetest.ChunkOf(c, nil)
	o.Shards = b.laneOf("anna")
	o.After = campaigns.BeforeShards(o.Shards)
	usage := &booking.CapUsage{Caps: push.Caps{RecipientsPerDay: 1}, Days: map[booking.Day]int{}}
	o.Room = func(_ context.Context, drafts []booking.Draft) (*booking.CapUsage, error) { return usage, nil }
	_, err := o.Decide(t.Context(), b.CampaignChunk)
	uncounted, ok := errors.AsType[*campaign.UncountedError](err)
	if !ok || uncounted.Day != booking.DayOf(c.SendAt) {
		t.Fatalf("%v", err)
	}
	usage.Days[uncounted.Day] = 1
	done, err := o.Decide(t.Context(), b.CampaignChunk)
	if err != nil || len(done.Decided) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if outcome, reason, rules := done.Decided[0].Outcome(); outcome != broadcast.OutcomeRefused || reason != "tenant-cap-exceeded" || rules[0] != booking.RecipientsPerDay {
		t.Errorf("%s %s %v", outcome, reason, rules)
	}
}

// TestTryCampaignChunk_Look checks that Look receives the bookings of each recipient before the decision.
func TestTryCampaignChunk_Look(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.Booked(t, "anna", time.Hour)
	c := b.MustCampaign(t, "anna")
	o := storetest.ChunkOf(c, storetest.ThreeRules)
	o.Shards = b.laneOf("anna")
	o.After = campaigns.BeforeShards(o.Shards)
	var seen []quota.Booking
	o.Look = func(_ quota.Recipient, of booking.Standing, view quota.View) {
		if seen = view.Bookings(); of.Terms == nil {
			t.Error("no terms")
		}
	}
	if _, err := o.Decide(t.Context(), b.CampaignTrial); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || seen[0].ID != before.ID {
		t.Errorf("%+v", seen)
	}
}

// laneOf returns the shards of the chunk that contains a recipient.
func (b *bundle) laneOf(recipient string) push.Lane {
	return push.LaneOf(b.CampaignLanes(), push.RecipientKey(b.TenantID, recipient))
}

package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// MustCampaign inserts a starting campaign with an audience, for an hour after the start of the tests.
func (b *Bundle) MustCampaign(t testing.TB, recipients ...string) broadcast.Campaign {
	t.Helper()
	c := broadcast.Campaign{
		ID: uuid.New(), Tenant: b.TenantID, Name: "sale", Channel: "log", SendAt: Began.Add(time.Hour), OnConflict: "reject", Message: json.RawMessage(`{"title":"hello"}`),
		Status: broadcast.Starting, Audience: uuid.New(), Size: int64(len(recipients)), StartedAt: Began,
	}
	b.Exec(t, `INSERT INTO campaigns (id, tenant_id, name, channel, send_at, message, status, audience_id, audience, started_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		c.ID, c.Tenant, c.Name, c.Channel, c.SendAt, c.Message, string(c.Status), c.Audience, c.Size, c.StartedAt)
	for i, r := range recipients {
		key := push.RecipientKey(b.TenantID, r)
		b.Exec(t, `INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			push.Shard(key), c.Audience, key, r, c.Tenant, c.ID, i+2)
	}
	return c
}

// People returns the ids of n recipients.
func People(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("user-", i)
	}
	return all
}

// ChunkOf returns an order for chunks of a campaign. Lines of recipients that begin with "bad" are invalid.
func ChunkOf(c broadcast.Campaign, policy quota.Policy) campaign.Chunk {
	return campaign.Chunk{Part: campaigns.Part{Campaign: c}, File: policy, Now: Began, Plan: func(line broadcast.AudienceLine, _ booking.Standing, _ json.RawMessage) (booking.Draft, error) {
		if len(line.Recipient) > 3 && line.Recipient[:3] == "bad" {
			return booking.Draft{}, errors.New("is bad")
		}
		d := Draft(c.Tenant, line.Recipient, c.SendAt.Sub(Began))
		d.Push.Campaign = c.ID
		d.Push.ID = push.CampaignPushID(c.ID, c.StartedAt, c.SendAt, push.RecipientKey(c.Tenant, line.Recipient), line.Recipient)
		if c.OnConflict == "defer" {
			d.Latest = c.SendAt.Add(time.Hour)
		}
		return d, nil
	}}
}

// BookAll books all of a campaign, and returns the decisions.
func (b *Bundle) BookAll(t testing.TB, o campaign.Chunk, chunk func(campaign.Chunk) (campaign.Done, error)) map[string]string {
	t.Helper()
	outcomes := map[string]string{}
	for _, lane := range b.CampaignLanes() {
		o.Shards, o.After = lane, campaigns.BeforeShards(lane)
		for more := true; more; {
			done, err := chunk(o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range done.Decided {
				outcome, reason, rules := done.Decided[i].Outcome()
				outcomes[done.Decided[i].Recipient] = fmt.Sprintf("%s %s %v", outcome, reason, rules)
			}
			o.After, more = done.Next, done.More
		}
	}
	return outcomes
}

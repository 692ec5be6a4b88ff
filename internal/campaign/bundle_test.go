package campaign_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// bundle is campaigns on a real server.
type bundle struct {
	*campaign.Simulator
	exec   func(t tester, sql string, args ...any) // runs a statement in the database
	store  *store.Store
	pushes *schedule.Service
	parse  campaign.Template // nil: the campaign's message
}

// stores serializes the tests, because workers process all tenants.
var stores = testenv.Stores{Config: store.Config{Lanes: 4}}

func setup(t testing.TB, policy ...quota.Rule) *bundle {
	t.Helper()
	url, st := stores.Take(t)
	b := &bundle{parse: plain{}, store: st}
	b.exec = func(_ tester, sql string, args ...any) { t.Helper(); testenv.Exec(t, url, sql, args...) }
	b.pushes = schedule.New(b.store, nil, deaf{}, deaf{}, time.Now, schedule.Config{
		Policy: quota.Policy(policy), Channels: []string{"sms", "email"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute,
	})
	drafts := campaign.New(b.store, time.Now, campaign.Config{MaxPerTenant: 1000, MaxAudience: 1_000_000, Channels: []string{"sms", "email"}, MaxHorizon: 365 * 24 * time.Hour})
	b.Simulator = campaign.NewSimulator(b.store, drafts, b.pushes, campaign.SimulatorConfig{
		Policy: quota.Policy(policy), Parse: func(c *broadcast.Campaign) (campaign.Template, error) {
			if b.parse != nil {
				return b.parse, nil
			}
			return campaign.Parse(c)
		},
	})
	return b
}

// tester is a *testing.T, or a *rapid.T.
type tester interface {
	Helper()
	Fatal(...any)
	Context() context.Context
}

func (b *bundle) newTenant(t tester) uuid.UUID {
	t.Helper()
	id, _, err := b.store.CreateTenant(t.Context(), uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// has gives a tenant a policy of its own.
func (b *bundle) has(t tester, tenant uuid.UUID, d policy.Document) {
	t.Helper()
	stored, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `WITH v AS (UPDATE tenants SET policy_version = policy_version + 1 WHERE id = $1 RETURNING policy_version)
		INSERT INTO policies (tenant_id, version, document) SELECT $1, policy_version, $2::json FROM v`, [16]byte(tenant), stored)
}

// describes stores descriptions of recipients.
func (b *bundle) describes(t tester, tenant uuid.UUID, people map[string]booking.Person) {
	t.Helper()
	rows := []map[string]any{}
	for who, p := range people {
		zoneName, limits := "", p.Limits
		if p.Zone != nil {
			zoneName = p.Zone.String()
		}
		if limits == nil {
			limits = map[string]int{}
		}
		rows = append(rows, map[string]any{
			"key": push.RecipientKey(tenant, who), "recipient": who, "zone": zoneName, "limits": limits, "all": p.OptOuts.All,
			"channels": append([]string{}, p.OptOuts.Channels...), "categories": append([]string{}, p.OptOuts.Categories...),
		})
	}
	b.exec(t, `UPDATE tenants SET described = true WHERE id = $1`, [16]byte(tenant))
	b.exec(t, `INSERT INTO recipients (shard, tenant_id, recipient_key, recipient, time_zone, limits, opt_out_all, opt_out_channels, opt_out_categories)
		SELECT key & 255, $1, key, recipient, zone, limits, "all", channels, categories
		FROM jsonb_to_recordset($2::jsonb) AS r (key bigint, recipient text, zone text, limits jsonb, "all" bool, channels text[], categories text[])`, [16]byte(tenant), rows)
}

// holds books pushes of a tenant that has no rules yet.
func (b *bundle) holds(t tester, all ...push.Push) {
	t.Helper()
	for part := range slices.Chunk(all, 1000) {
		o := booking.Order{Policy: quota.Policy(nil)}
		for _, p := range part {
			if p.ID == uuid.Nil {
				p.ID = push.NewID(p.SendAt, push.RecipientKey(p.Tenant, p.Recipient))
			}
			p.RequestedSendAt, p.TTL, p.Message = p.SendAt, time.Hour, json.RawMessage(`{}`)
			o.Drafts = append(o.Drafts, booking.Draft{Push: p})
		}
		decisions, err := b.store.Book(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range decisions {
			if decisions[i].Outcome != booking.Booked {
				t.Fatal(decisions[i])
			}
		}
	}
}

// drafted stores a draft with an audience.
func (b *bundle) drafted(t tester, c broadcast.Campaign, audience ...broadcast.AudienceLine) broadcast.Campaign {
	t.Helper()
	c.ID, c.Audience, c.Size = uuid.New(), uuid.New(), int64(len(audience))
	orNull := func(at time.Time) *time.Time {
		if at.IsZero() {
			return nil
		}
		return &at
	}
	if c.OnConflict == "" {
		c.OnConflict = "reject"
	}
	if c.Channel == "" {
		c.Channel = "sms"
	}
	b.exec(t, `INSERT INTO campaigns (id, tenant_id, name, channel, category, send_at, local_time, spread_s, on_conflict, latest, message, audience_id, audience)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '{}', $11, $12)`, [16]byte(c.ID), [16]byte(c.Tenant), c.Name, c.Channel, c.Category,
		orNull(c.SendAt), orNull(c.LocalTime), int64(c.Spread/time.Second), c.OnConflict, orNull(c.Latest), [16]byte(c.Audience), c.Size)
	var (
		lines                 []int
		keys                  []int64
		recipients, addresses []string
	)
	for i, line := range audience {
		lines, keys = append(lines, i+2), append(keys, push.RecipientKey(c.Tenant, line.Recipient))
		recipients, addresses = append(recipients, line.Recipient), append(addresses, line.To)
	}
	b.exec(t, `INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line, address)
		SELECT (n.key & 255)::smallint, $1, n.key, n.recipient, $2, $3, n.line, n.address
		FROM unnest($4::bigint[], $5::text[], $6::int[], $7::text[]) AS n (key, recipient, line, address)`,
		[16]byte(c.Audience), [16]byte(c.Tenant), [16]byte(c.ID), keys, recipients, lines, addresses)
	return c
}

// simulate simulates a campaign, and returns the result, and the result of each recipient.
func (b *bundle) simulate(t tester, c broadcast.Campaign, own push.OwnCaps) (*campaign.Simulation, map[string]campaign.Simulated) {
	t.Helper()
	each := map[string]campaign.Simulated{}
	sum, err := b.Simulate(t.Context(), c.Tenant, c.ID, own, func(all []campaign.Simulated) error {
		for _, one := range all {
			if _, twice := each[one.Recipient]; twice {
				t.Fatal(one.Recipient, "twice")
			}
			each[one.Recipient] = one
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum, each
}

// start books a campaign chunk by chunk, counts the caps again for each, and returns the decision of each recipient.
func (b *bundle) start(t tester, c broadcast.Campaign, caps push.Caps, file booking.Terms) map[string]campaigns.Decided {
	t.Helper()
	now, _, err := b.store.CampaignClock(t.Context(), c.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE campaigns SET status = 'starting', started_at = $2 WHERE id = $1`, [16]byte(c.ID), now)
	days, all := map[booking.Day]bool{}, map[string]campaigns.Decided{}
	o := campaign.Chunk{Part: campaigns.Part{Campaign: c}, File: file, Now: now, Plan: campaign.NewPlanner(b.pushes, c, b.parse, now).Plan}
	if caps != (push.Caps{}) {
		o.Room = func(ctx context.Context, _ []booking.Draft) (*booking.CapUsage, error) {
			u := &booking.CapUsage{Caps: caps, Days: map[booking.Day]int{}}
			var err error
			u.Pending, err = b.store.Pending(ctx, c.Tenant, 1000)
			for day := range maps.Keys(days) {
				if err == nil {
					u.Days[day], err = b.store.Recipients(ctx, c.Tenant, day, 1000)
				}
			}
			return u, err
		}
	}
	for _, shards := range b.store.CampaignLanes() {
		o.Shards, o.After = shards, campaigns.BeforeShards(shards)
		for more := true; more; {
			done, err := o.Decide(t.Context(), b.store.CampaignChunk)
			if uncounted, ok := err.(*campaign.UncountedError); ok {
				days[uncounted.Day] = true
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range done.Decided {
				all[d.Recipient] = d
			}
			o.After, more = done.Next, done.More
		}
	}
	return all
}

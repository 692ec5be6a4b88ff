package campaign_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestSimulate_States: only a draft with an audience is simulated, and only while it remains one.
func TestSimulate_States(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tenant := b.newTenant(t)
	c := b.drafted(t, broadcast.Campaign{Tenant: tenant}, broadcast.AudienceLine{Recipient: "anna"})
	simulate := func(tenant, id uuid.UUID, each func([]campaign.Simulated) error) error {
		_, err := b.Simulate(t.Context(), tenant, id, push.OwnCaps{}, each)
		return err
	}
	empty := b.drafted(t, broadcast.Campaign{Tenant: tenant})
	state := func(err error, detail string) {
		t.Helper()
		wrong, ok := errors.AsType[*broadcast.StateError](err)
		if !ok || wrong.Detail != detail {
			t.Errorf("%v, want %s", err, detail)
		}
	}
	state(simulate(tenant, empty.ID, nil), "the campaign has no audience; upload one first")
	if err := simulate(b.newTenant(t), c.ID, nil); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("a stranger's campaign: %v", err)
	}
	state(simulate(tenant, c.ID, func([]campaign.Simulated) error {
		b.exec(t, `UPDATE campaigns SET audience_id = gen_random_uuid(), updated_at = clock_timestamp() WHERE id = $1`, [16]byte(c.ID))
		return nil
	}), "the campaign was changed while it was simulated; simulate it again")
	b.exec(t, `UPDATE campaigns SET audience_id = $2 WHERE id = $1`, [16]byte(c.ID), [16]byte(c.Audience))
	state(simulate(tenant, c.ID, func([]campaign.Simulated) error {
		b.exec(t, `UPDATE campaigns SET status = 'starting' WHERE id = $1`, [16]byte(c.ID))
		return nil
	}), "the campaign is starting; it can only be simulated while it is a draft")
	state(simulate(tenant, c.ID, nil), "the campaign is starting; it can only be simulated while it is a draft")
	past := b.drafted(t, broadcast.Campaign{Tenant: tenant, SendAt: time.Now().Add(-time.Hour)}, broadcast.AudienceLine{Recipient: "anna"})
	if wrong, ok := errors.AsType[invalid.FieldErrors](simulate(tenant, past.ID, nil)); !ok || len(wrong) != 1 || wrong[0].Field != "send_at" {
		t.Errorf("a time that is over: %v", wrong)
	}
	gone := errors.New("the caller went away")
	if err := simulate(tenant, b.drafted(t, broadcast.Campaign{Tenant: tenant}, broadcast.AudienceLine{Recipient: "anna"}).ID, func([]campaign.Simulated) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// TestSimulate_Now: a campaign without a time is simulated as if it were started now, by Postgres' clock.
func TestSimulate_Now(t *testing.T) {
	t.Parallel()
	b := setup(t, quota.Rule{Name: "per-day", Limit: 1, Window: 24 * time.Hour})
	tenant := b.newTenant(t)
	b.holds(t, push.Push{Content: push.Content{Recipient: "bert", Channel: "sms"}, Tenant: tenant, SendAt: time.Now().Add(time.Hour).Truncate(time.Second)})
	b.parse = shown{"name"}
	b.drafted(t, broadcast.Campaign{Tenant: tenant})
	c := b.drafted(t, broadcast.Campaign{Tenant: tenant}, broadcast.AudienceLine{Recipient: "anna"}, broadcast.AudienceLine{Recipient: "bert"}, broadcast.AudienceLine{Recipient: "carl"})
	b.exec(t, `UPDATE campaign_recipients SET variables = $1 WHERE recipient <> 'carl' AND tenant_id = $2`, json.RawMessage(`{"name":"x"}`), [16]byte(tenant))
	b.exec(t, `UPDATE campaign_recipients SET recipient = '' WHERE recipient = 'dora' AND tenant_id = $1`, [16]byte(tenant))
	sum, each := b.simulate(t, c, push.OwnCaps{})
	if since := time.Since(each["anna"].SendAt); each["anna"].Outcome != "accepted" || since < 0 || since > time.Minute {
		t.Errorf("%+v", each["anna"])
	}
	if each["bert"].Outcome != "refused" || each["bert"].Reason != "quota-exceeded" || !each["bert"].SendAt.IsZero() {
		t.Errorf("%+v", each["bert"])
	}
	if each["carl"].Outcome != "invalid" || each["carl"].Reason != "message.title: the variable name is not known" {
		t.Errorf("%+v", each["carl"])
	}
	if sum.ByRule["per-day"] != 1 || len(sum.CollidesWith) > 0 || len(sum.BetterStarts) > 0 {
		t.Errorf("%+v", sum)
	}
}

// TestSimulate_Crowd: a simulation counts all bookings of a recipient that has very many.
func TestSimulate_Crowd(t *testing.T) {
	t.Parallel()
	b := setup(t, quota.Rule{Name: "many", Limit: 1500, Window: 24 * time.Hour}, quota.Rule{Name: "few", Limit: 1, Window: time.Second})
	tenant, at := b.newTenant(t), time.Now().Add(48*time.Hour).Truncate(time.Hour)
	var held []push.Push
	for i := range 1500 {
		held = append(held, push.Push{Content: push.Content{Recipient: "anna", Channel: "sms"}, Tenant: tenant, SendAt: at.Add(time.Duration(-3*i-1) * time.Second)})
	}
	b.holds(t, held...)
	c := b.drafted(t, broadcast.Campaign{Tenant: tenant, SendAt: at, OnConflict: "defer"}, broadcast.AudienceLine{Recipient: "anna"}, broadcast.AudienceLine{Recipient: "bert"})
	sum, each := b.simulate(t, c, push.OwnCaps{})
	if free := held[1499].SendAt.Add(24 * time.Hour); each["anna"].Outcome != "deferred" || !each["anna"].SendAt.Equal(free) || each["bert"].Outcome != "accepted" || sum.ByRule["many"] != 1 {
		t.Errorf("%+v, want anna at %s; %+v", each, free, sum)
	}
}

// TestSimulate_EqualsWorkers: workers book what a simulation predicted, under the same caps.
func TestSimulate_EqualsWorkers(t *testing.T) {
	t.Parallel()
	const recipients = 1300
	b := setupRunning(t, quota.Rule{Name: "hour", Limit: 1, Window: time.Hour})
	b.caps = push.Caps{PendingPushes: 1400, RecipientsPerDay: 700}
	w := b.worker(b.store)
	at := time.Now().Add(72 * time.Hour).Truncate(24 * time.Hour).Add(23 * time.Hour)
	first := b.draft(400, campaign.Change{SendAt: &at})
	b.act(first, broadcast.Start)
	b.until(w, first, broadcast.Running)
	b.exec(`UPDATE campaigns SET worker = gen_random_uuid(), lease_until = 'infinity' WHERE id = $1`, [16]byte(first.ID)) // no worker takes it
	deferred := "defer"
	c := b.draft(recipients, campaign.Change{SendAt: new(at.Add(10 * time.Minute)), Spread: new(100 * time.Minute), OnConflict: &deferred})
	simulator := campaign.NewSimulator(b.store, b.Service, b.service(b.store), campaign.SimulatorConfig{Policy: b.policy, Caps: b.caps, Parse: campaign.Parse})
	each := map[string]string{}
	sum, err := simulator.Simulate(t.Context(), b.tenant, c.ID, push.OwnCaps{}, func(all []campaign.Simulated) error {
		for _, one := range all {
			at := ""
			if !one.SendAt.IsZero() {
				at = one.SendAt.UTC().Format(time.RFC3339)
			}
			each[one.Recipient] = string(one.Outcome) + " " + at + " " + one.Reason
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Recipients != recipients || sum.Accepted == 0 || sum.Deferred == 0 || sum.ByRule["recipients_per_day"]+sum.ByRule["pending_pushes"] == 0 || sum.CollidesWith[0].Campaign != first.ID {
		t.Errorf("%+v", sum)
	}
	b.act(c, broadcast.Start)
	b.until(w, c, broadcast.Running)
	booked := testenv.Query[string](t, b.url, `
		SELECT string_agg(r.recipient || '=' || concat_ws(' ', CASE WHEN r.outcome <> 'booked' THEN r.outcome WHEN p.send_at > p.requested_send_at THEN 'deferred' ELSE 'accepted' END,
			coalesce(to_char(p.send_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''), r.reason), ',')
		FROM campaign_recipients r LEFT JOIN pushes p ON p.id = r.push_id WHERE r.campaign_id = $1`, [16]byte(c.ID))
	n := 0
	for one := range strings.SplitSeq(booked, ",") {
		who, got, _ := strings.Cut(one, "=")
		if n++; each[who] != got {
			t.Fatalf("%s was to be %s, and is %s", who, each[who], got)
		}
	}
	if n != recipients {
		t.Errorf("%d recipients", n)
	}
}

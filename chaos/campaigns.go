package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// settledCampaign is a campaign in Postgres, with its numbers.
type settledCampaign struct {
	ID, Name, Status                                      string
	Audience, Booked, Refused, OptedOut, Invalid, Dropped int
	Sent, Failed, Expired, Withdrawn                      int
}

// campaignLine is a recipient of a campaign.
type campaignLine struct{ Campaign, Recipient, Outcome, Push string }

// The actions on a running campaign.
const (
	leftAlone    = "left alone"
	pausedOnce   = "paused"
	canceledOnce = "canceled"
)

// startCampaigns creates and starts a campaign of each sort, each with a number of recipients of its own. They are due
// in a few seconds; the ones to pause or cancel are due later.
func (b *bundle) startCampaigns(recipients int) (ids map[string]string) {
	ids = map[string]string{}
	c := b.newCaller()
	for _, name := range []string{leftAlone, pausedOnce, canceledOnce} {
		ahead := 12 * time.Second // time enough to pause it
		if name == leftAlone {
			ahead = 4 * time.Second
		}
		ids[name] = testenv.Query[string](b, b.Database, `
			WITH c AS (
				INSERT INTO campaigns (id, tenant_id, name, channel, send_at, message, audience_id, audience)
				SELECT gen_random_uuid(), id, $1, 'push', date_trunc('second', clock_timestamp() + $4::interval), '{"title":"chaos"}', gen_random_uuid(), $2
				FROM tenants WHERE name <> $3
				RETURNING id, tenant_id, audience_id
			), keyed AS (
				SELECT c.*, r, n, ('x' || encode(substr(sha256(uuid_send(tenant_id) || convert_to(r, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS key
				FROM c, generate_series(1, $2) n, LATERAL (SELECT replace($1, ' ', '-') || '-' || n AS r) l
			), lines AS (
				INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line)
				SELECT key & 255, audience_id, key, r, tenant_id, id, n + 1 FROM keyed
			)
			SELECT id::text FROM c`, name, recipients, teamTenant, ahead)
		c.act(b.Context(), ids[name], "start")
	}
	return ids
}

// act repeats an action on a campaign until it is done.
func (c *caller) act(ctx context.Context, campaign, action string) {
	c.insist(ctx, "POST", "/v1/campaigns/"+campaign+"/"+action, "", nil)
}

// endCampaigns pauses and resumes one campaign and cancels another one, and waits until all have ended, see await.
func (b *bundle) endCampaigns(ids map[string]string, timeout time.Duration) {
	c := b.newCaller()
	b.await(5*time.Second, `SELECT count(*) FROM campaigns WHERE status = 'starting' AND name = $1`, pausedOnce)
	c.act(b.Context(), ids[pausedOnce], "pause")
	b.await(5*time.Second, `SELECT count(*) FROM campaigns WHERE status = 'pausing'`)
	c.act(b.Context(), ids[canceledOnce], "cancel")
	c.act(b.Context(), ids[pausedOnce], "resume")
	b.await(timeout, `SELECT count(*) FROM campaigns WHERE ended_at IS NULL`)
}

// readCampaigns reads what campaigns have done.
func (f *facts) readCampaigns(b *bundle, conn *pgx.Conn) {
	rows, _ := conn.Query(b.Context(), `SELECT id::text, name, status, audience::int, booked::int, refused::int, opted_out::int, invalid::int, dropped::int,
		coalesce(sent, -1)::int, coalesce(failed, 0)::int, coalesce(expired, 0)::int, coalesce(withdrawn, 0)::int FROM campaigns`)
	var err error
	f.campaigns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[settledCampaign])
	testenv.Check(b, err)
	rows, _ = conn.Query(b.Context(), `SELECT campaign_id::text, recipient, coalesce(outcome, ''), coalesce(push_id::text, '') FROM campaign_recipients`)
	f.lines, err = pgx.CollectRows(rows, pgx.RowToStructByPos[campaignLine])
	testenv.Check(b, err)
}

// campaignsHold checks I9: every campaign ends, every recipient is decided once and has one push if it was booked, and
// the counts add up. I5 finds pushes without a line.
func (j *findings) campaignsHold() {
	type numbers struct{ audience, booked, dropped, sent, failed, expired, canceled int }
	counted, pushes := map[string]*numbers{}, map[string]bool{}
	for _, c := range j.facts.campaigns {
		counted[c.ID] = &numbers{}
	}
	for _, l := range j.facts.lines {
		n := counted[l.Campaign]
		if n == nil {
			continue
		}
		n.audience++
		switch l.Outcome {
		case "":
			j.broken("I9", "%s was never decided", l.Recipient)
		case "canceled":
			n.dropped++
		case "booked":
			p, ok := j.facts.rows[l.Push]
			if !ok || p.Recipient != l.Recipient || pushes[l.Push] {
				j.broken("I9", "push %s of %s is not in Postgres, or belongs to two recipients", l.Push, l.Recipient)
			}
			pushes[l.Push] = true
			n.booked++
			switch p.Status {
			case "sent":
				n.sent++
			case "failed":
				n.failed++
			case "expired":
				n.expired++
			case "canceled":
				n.canceled++
			default:
				j.broken("I1", "push %s of a campaign is still %s", l.Push, p.Status)
			}
		}
	}
	for _, c := range j.facts.campaigns {
		n := counted[c.ID]
		switch {
		case c.Status != "finished" && c.Status != "canceled":
			j.broken("I9", "the campaign that is %s is still %s", c.Name, c.Status)
		case c.Name == leftAlone && (c.Booked != c.Audience || n.canceled > 0):
			j.broken("I9", "of the campaign that is %s, %d of %d were booked, and %d canceled", c.Name, c.Booked, c.Audience, n.canceled)
		}
		got := fmt.Sprint(c.Audience, c.Booked, c.Dropped, c.Sent, c.Failed, c.Expired, c.Withdrawn, c.Booked+c.Refused+c.OptedOut+c.Invalid+c.Dropped)
		if want := fmt.Sprint(n.audience, n.booked, n.dropped, n.sent, n.failed, n.expired, n.canceled, n.audience); got != want {
			j.broken("I9", "the numbers of the campaign that is %s are %s, and its recipients make %s", c.Name, got, want)
		}
	}
}

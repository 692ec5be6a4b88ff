package campaigns

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/stats"
)

// Decided is the outcome of a line.
type Decided struct {
	Line
	Invalid  string           // why the line is invalid; empty: it was decided
	Draft    booking.Draft    // the draft that was decided
	Decision booking.Decision // about the draft
}

// Outcome returns the outcome of the line, with the reason and the names of the rules that refused it.
func (d *Decided) Outcome() (outcome broadcast.Outcome, reason string, rules []string) {
	switch {
	case d.Erased:
		return broadcast.OutcomeCanceled, "erased", nil
	case d.Invalid != "":
		return broadcast.OutcomeInvalid, d.Invalid, nil
	}
	return d.Decision.OfCampaign()
}

// Deferred reports whether the recipient's push was booked at another time than requested.
func (d *Decided) Deferred() bool {
	p := &d.Decision.Push
	return d.Invalid == "" && !d.Erased && d.Decision.Outcome == booking.Booked && !p.SendAt.Equal(p.RequestedSendAt)
}

// decidedSQL records the outcomes of recipients.
const decidedSQL = `
	UPDATE campaign_recipients r SET outcome = n.outcome, push_id = n.push_id, requested_send_at = n.requested, reason = n.reason,
		rules = string_to_array(n.rules, chr(31)), conflicts = n.conflicts::json, decided_at = $11
	FROM unnest($3::bigint[], $4::text[], $5::text[], $6::uuid[], $7::timestamptz[], $8::text[], $9::text[], $10::text[])
		AS n (recipient_key, recipient, outcome, push_id, requested, reason, rules, conflicts)
	WHERE r.shard = ANY ($2::smallint[]) AND r.audience_id = $1 AND r.shard = (n.recipient_key & 255)::smallint
		AND r.recipient_key = n.recipient_key AND r.recipient = n.recipient`

// countedSQL adds to the counts of a campaign.
const countedSQL = `
	UPDATE campaigns SET booked = booked + $2, deferred = deferred + $3, refused = refused + $4, opted_out = opted_out + $5, invalid = invalid + $6,
		dropped = dropped + $7, updated_at = clock_timestamp()
	WHERE id = $1`

// conflict is the JSON of a booking that prevented a recipient's push.
type conflict struct {
	ID     string `json:"id"`
	SendAt string `json:"send_at"`
}

// keptConflicts limits how many conflicts are stored for a recipient.
const keptConflicts = 10

// conflictsOf returns the conflicts of a decision as JSON, each once; nil if there are none.
func conflictsOf(v *booking.Decision, at time.Time) *string {
	var (
		all  []conflict
		seen = map[string]bool{}
	)
	for _, of := range v.Quota.Violations {
		of.Keep(keptConflicts, at)
		for _, b := range of.Conflicts {
			if id := b.ID.String(); !seen[id] && len(all) < keptConflicts {
				seen[id] = true
				all = append(all, conflict{id, b.At.UTC().Format(time.RFC3339)})
			}
		}
	}
	if all == nil {
		return nil
	}
	text, _ := json.Marshal(all)
	return new(string(text))
}

// decidedColumns holds the outcomes of lines, one array per column, and their counts.
type decidedColumns struct {
	keys                          []int64
	recipients, outcomes, reasons []string
	pushes                        []*uuid.UUID
	requested                     []*time.Time
	rules, conflicts              []*string

	booked, deferred, refused, optedOut, invalid, dropped int
}

func (a *decidedColumns) add(d *Decided) {
	outcome, reason, rules := d.Outcome()
	kept := string(outcome)
	var (
		id        *uuid.UUID
		requested *time.Time
		joined    *string
	)
	switch outcome {
	case broadcast.OutcomeScheduled:
		kept, id = "booked", &d.Decision.Push.ID
		a.booked++
		if d.Deferred() {
			a.deferred++
		}
	case broadcast.OutcomeOptedOut:
		a.optedOut++
	case broadcast.OutcomeInvalid:
		a.invalid++
	case broadcast.OutcomeCanceled:
		a.dropped++
	default:
		a.refused++
	}
	if !d.Draft.Push.RequestedSendAt.IsZero() {
		requested = &d.Draft.Push.RequestedSendAt
	}
	if rules != nil {
		joined = new(join(rules))
	}
	a.keys, a.recipients, a.outcomes, a.reasons = append(a.keys, d.Key), append(a.recipients, d.Recipient), append(a.outcomes, kept), append(a.reasons, reason)
	a.pushes, a.requested, a.rules = append(a.pushes, id), append(a.requested, requested), append(a.rules, joined)
	a.conflicts = append(a.conflicts, conflictsOf(&d.Decision, d.Draft.Push.SendAt))
}

// join joins the names of rules with a character that no name contains.
func join(rules []string) string {
	text := ""
	for i, r := range rules {
		if i > 0 {
			text += "\x1f"
		}
		text += r
	}
	return text
}

// refusedOf counts the refused recipients of a chunk, in total and by rule.
func refusedOf(c *broadcast.Campaign, decided []Decided, now time.Time) (counts []stats.RefusedCount) {
	all, level := map[string]int{}, push.Normal
	for i := range decided {
		outcome, _, rules := decided[i].Outcome()
		if outcome != broadcast.OutcomeRefused && outcome != broadcast.OutcomeOptedOut {
			continue
		}
		all[""]++
		level = decided[i].Decision.Push.Level // the same for all
		for _, rule := range rules {
			all[rule]++
		}
	}
	for rule, n := range all {
		counts = append(counts, stats.RefusedCount{Tenant: c.Tenant, Hour: now, Channel: c.Channel, Category: c.Category, Level: level, Campaign: c.ID, Rule: rule, Pushes: n})
	}
	return counts
}

// Write stores the granted pushes and the outcomes of the planned lines, and commits, in one exchange. now is the time of
// the snapshot. If a decision needs more bookings than were read, it writes nothing and returns [ErrReadMore].
func (c *Chunk) Write(ctx context.Context, decided []Decided, granted []*booking.Decision, now time.Time) error {
	if err := c.read.Close(); err != nil {
		return err
	}
	for _, recipient := range c.read.Crowded {
		c.store.pushes.Crowds.Put(recipient, pushes.Crowd{})
	}
	unseen := slices.ContainsFunc(decided, func(d Decided) bool { return d.Decision.Outcome == booking.Unseen })
	if unseen || len(c.read.Crowded) > 0 {
		return ErrReadMore
	}
	if c.trial {
		return nil
	}
	failpoint.Hit(failpoint.CampaignDecided)
	b, of := &pgx.Batch{}, &c.part.Campaign
	if len(granted) > 0 {
		pushes.QueueInsert(b, granted, c.read)
		(*pushes.HeldCrowds)(nil).QueueChanged(b, granted)
		pushes.QueueNearLimits(b, granted)
	}
	if len(decided) > 0 {
		var a decidedColumns
		for i := range decided {
			a.add(&decided[i])
		}
		b.Queue(c.store.db.Joining(decidedSQL), of.Audience, pg.ShardsOf(a.keys...), a.keys, a.recipients, a.outcomes, a.pushes, a.requested,
			a.reasons, a.rules, a.conflicts, now)
		pushes.QueueRefused(b, refusedOf(of, decided, now))
		b.Queue(countedSQL, of.ID, a.booked, a.deferred, a.refused, a.optedOut, a.invalid, a.dropped)
	}
	b.Queue(`commit`)
	res := c.session.SendBatch(ctx, b)
	failpoint.Hit(failpoint.ChunkCommitting)
	return res.Close()
}

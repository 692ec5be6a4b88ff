package campaigns

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// undecidedSQL reads the next undecided recipients of a campaign. The statement that locks them follows the one that locks
// their campaign, so no concurrent transaction can decide them.
var undecidedSQL, undecidedPlacesSQL = undecided(`recipient_key, recipient, line, address, variables`), undecided(`recipient_key, recipient`)

func undecided(columns string) string {
	return `
	SELECT ` + columns + ` FROM campaign_recipients
	WHERE {shard} audience_id = $1 AND shard BETWEEN $2 AND $3 AND (shard, recipient_key, recipient) > ($4, $5, $6) AND outcome IS NULL
	ORDER BY shard, recipient_key, recipient LIMIT $7`
}

// NextUndecided returns the shard of the next undecided recipient of a campaign after a place, if there is one. If each
// shard is a lane, a small campaign has no recipients in most lanes, and a caller skips those.
func (s *Runs) NextUndecided(ctx context.Context, p push.Campaign, after CampaignPlace) (shard int, found bool, err error) {
	all, err := pg.Collect(ctx, s.db, pgx.RowTo[int], `
		SELECT shard FROM campaign_recipients
		WHERE audience_id = $1 AND (shard, recipient_key, recipient) > ($2, $3, $4) AND outcome IS NULL ORDER BY shard, recipient_key, recipient LIMIT 1`,
		p.Audience, after.Shard, after.Key, after.Recipient)
	if err != nil || len(all) == 0 {
		return 0, false, err
	}
	return all[0], true, nil
}

// chunkLines reads the lines of a chunk, and reports whether there may be more.
func (s *Runs) chunkLines(ctx context.Context, c *pgxpool.Conn, o *CampaignChunk, lock bool) (lines []CampaignDecided, more bool, err error) {
	sql := pg.InShard(undecidedSQL, "$2::bigint", o.Shards)
	if lock {
		sql += ` FOR UPDATE`
	}
	rows, err := c.Query(ctx, sql, o.Campaign.Audience, o.Shards.First, o.Shards.Last, o.After.Shard, o.After.Key, o.After.Recipient, chunkLines)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		if size > chunkBytes {
			return lines, true, nil
		}
		var d CampaignDecided
		if err := rows.Scan(&d.Key, &d.Line.Recipient, &d.Line.Line, &d.Line.To, (*[]byte)(&d.Line.Variables)); err != nil {
			return nil, false, err
		}
		d.Erased = d.Line.Recipient == ""
		lines, size = append(lines, d), size+len(d.Line.Variables)
	}
	return lines, len(lines) == chunkLines, rows.Err()
}

// chunkPeople reads the descriptions of a chunk's recipients, with their attributes, and checks the terms.
func (s *Runs) chunkPeople(ctx context.Context, c pg.Batcher, o *CampaignChunk, inForce *terms.Read, described bool, lines []CampaignDecided) (*terms.People, error) {
	people := &terms.People{WithAttributes: true}
	if described {
		for i := range lines {
			if !lines[i].Erased {
				people.Add(o.Campaign.Tenant, lines[i].Key)
			}
		}
	}
	b := &pgx.Batch{}
	inForce.Queue(b).Query(inForce.Collect)
	if len(people.Keys) > 0 {
		people.Queue(s.terms, b).Query(people.Collect)
	}
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return people, inForce.Check()
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

func (a *decidedColumns) add(d *CampaignDecided) {
	outcome, reason, rules := d.Outcome()
	kept := string(outcome)
	var (
		id        *uuid.UUID
		requested *time.Time
		joined    *string
	)
	switch outcome {
	case push.OutcomeScheduled:
		kept, id = "booked", &d.Decision.Push.ID
		a.booked++
		if d.Deferred() {
			a.deferred++
		}
	case push.OutcomeOptedOut:
		a.optedOut++
	case push.OutcomeInvalid:
		a.invalid++
	case push.OutcomeCanceled:
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
	a.keys, a.recipients, a.outcomes, a.reasons = append(a.keys, d.Key), append(a.recipients, d.Line.Recipient), append(a.outcomes, kept), append(a.reasons, reason)
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
func refusedOf(c *push.Campaign, done *CampaignChunkDone) (counts []push.RefusedCount) {
	all := map[string]int{}
	for i := range done.Decided {
		outcome, _, rules := done.Decided[i].Outcome()
		if outcome != push.OutcomeRefused && outcome != push.OutcomeOptedOut {
			continue
		}
		all[""]++
		for _, rule := range rules {
			all[rule]++
		}
	}
	for rule, n := range all {
		counts = append(counts, push.RefusedCount{Tenant: c.Tenant, Hour: done.Now, Channel: c.Channel, Category: c.Category, Campaign: c.ID, Rule: rule, Pushes: n})
	}
	return counts
}

// writeChunk stores the granted pushes and the outcomes of the lines, and commits, in one exchange.
func (s *Runs) writeChunk(ctx context.Context, c *pgxpool.Conn, o *CampaignChunk, done *CampaignChunkDone, granted []booking.Grant, weeks pg.Parts) error {
	failpoint.Hit(failpoint.CampaignDecided)
	b := &pgx.Batch{}
	if len(granted) > 0 {
		pushes.QueueInsert(b, granted, weeks)
		(*pushes.HeldCrowds)(nil).QueueChanged(b, granted)
		pushes.QueueNearLimits(b, granted)
	}
	if len(done.Decided) > 0 {
		var a decidedColumns
		for i := range done.Decided {
			a.add(&done.Decided[i])
		}
		b.Queue(s.db.Joining(decidedSQL), o.Campaign.Audience, pg.ShardsOf(a.keys...), a.keys, a.recipients, a.outcomes, a.pushes, a.requested,
			a.reasons, a.rules, a.conflicts, done.Now)
		pushes.QueueRefused(b, refusedOf(&o.Campaign, done))
		b.Queue(countedSQL, o.Campaign.ID, a.booked, a.deferred, a.refused, a.optedOut, a.invalid, a.dropped)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.ChunkCommitting)
	return res.Close()
}

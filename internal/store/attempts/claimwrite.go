package attempts

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/suppression"
)

// These statements change waiting pushes, named by n, that are still as they were read. Each takes the row in live first,
// as cancels, moves and finishes do.
const (
	asRead = `l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.plan = n.plan AND l.token IS NULL`

	// claimSQL begins attempts. It changes only live: an attempt is written to pushes and sends when it ends.
	claimSQL = `
	UPDATE live l SET phase = ` + pg.UnderWay + `, token = n.token, pause_id = NULL, started_at = $8, next_at = n.lease_until, attempts = l.attempts + 1, more_due = n.more, address_key = n.address_key
	FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[], $5::timestamptz[], $6::uuid[], $7::bool[], $10::bigint[])
		AS n (recipient_key, send_at, id, plan, lease_until, token, more, address_key)
	WHERE l.shard = ANY ($9::smallint[]) AND ` + asRead + `
	RETURNING l.push_id`

	// parkDueSQL parks due pushes of paused or canceled campaigns, and keeps the campaigns in that state until the commit.
	parkDueSQL = `
	UPDATE live l SET next_at = 'infinity'
	FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[]) AS n (recipient_key, send_at, id, plan),
		(SELECT id FROM campaigns WHERE id = ANY ($6::uuid[]) AND status IN ` + heldCampaigns + ` FOR SHARE SKIP LOCKED) c
	WHERE l.shard = ANY ($5::smallint[]) AND ` + asRead + ` AND l.campaign_id = c.id
	RETURNING l.push_id`

	// pauseDueSQL parks due pushes that pauses cover. A pause that ends meanwhile parks none: the row is locked until the commit, so that
	// the worker that continues with the pushes of an ended pause finds them all.
	pauseDueSQL = `
	UPDATE live l SET next_at = 'infinity', pause_id = n.pause_id
	FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[], $6::uuid[]) AS n (recipient_key, send_at, id, plan, pause_id),
		(SELECT id FROM pauses WHERE id = ANY ($6::uuid[]) AND ended_at IS NULL FOR SHARE SKIP LOCKED) z
	WHERE l.shard = ANY ($5::smallint[]) AND ` + asRead + ` AND n.pause_id = z.id
	RETURNING l.push_id`

	putOff = `
	WITH changed AS (
		UPDATE live l SET next_at = n.next_at, plan = l.plan + 1, put_off_at = CASE WHEN n.held_by <> '' THEN statement_timestamp() END
		FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[], $5::timestamptz[], $8::text[], $9::timestamptz[], $10::timestamptz[])
			AS n (recipient_key, send_at, id, plan, next_at, held_by, held_since, held_until)
		WHERE l.shard = ANY ($7::smallint[]) AND ` + asRead + `
		RETURNING l.push_id, n.*
	), put_off AS (
		UPDATE {pushes} p SET next_at = changed.next_at, plan = p.plan + 1, updated_at = $6,
			held_by = changed.held_by, held_since = nullif(changed.held_since, ` + pg.NoTime + `), held_until = nullif(changed.held_until, ` + pg.NoTime + `)
		FROM changed
		WHERE p.shard = ANY ($7::smallint[]) AND p.id = changed.push_id
		RETURNING p.id{whole}
	){events}
	SELECT push_id FROM changed`
)

var (
	putOffSQL  = pushes.WithEvents(putOff, `put_off`, pushes.DeferredEvent)
	tooLateSQL = OverSQL(push.Expired, `'it expired before it could be sent'`)

	askedSQL = OverSQL(push.Canceled, `'it was canceled while it was being sent'`)

	// UnwantedSQL cancels waiting pushes of recipients that have opted out, unless they have changed since they were read.
	UnwantedSQL = OverSQL(push.Canceled, `'`+booking.OptedOutReason+`'`)
)

// suppressedSQL ends waiting pushes whose address is suppressed.
var suppressedSQL = OverSQL(push.Failed, `'`+suppression.Failed+`'`)

// orphanedSQL cancels waiting pushes of channels that their tenants have deleted.
var orphanedSQL = OverSQL(push.Canceled, `'`+booking.ChannelDeletedReason+`'`)

// rerouteSQL has waiting pushes found by the tenant's own channel, which now hides the operator's.
const rerouteSQL = `
	UPDATE live l SET own_channel = l.channel, channel = '` + booking.OwnRoute + `'
	FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[]) AS n (recipient_key, send_at, id, plan)
	WHERE l.shard = ANY ($5::smallint[]) AND l.own_channel IS NULL AND ` + asRead + `
	RETURNING l.push_id`

// OverSQL returns a statement that ends waiting pushes, unless they have changed since they were read. reason is an
// expression.
func OverSQL(status push.Status, reason string) string {
	return pushes.Ending{
		Rows:   `USING unnest($1::bigint[], $2::timestamptz[], $3::uuid[], $4::bigint[]) AS n (recipient_key, send_at, id, plan) WHERE l.shard = ANY ($5::smallint[]) AND ` + asRead,
		Shards: `$5`, Status: status, Reason: reason, Columns: `id`,
	}.SQL()
}

// flagSQL marks attempts under way: another push of the recipient waits for the end of the attempt.
const flagSQL = `
	UPDATE live l SET more_due = true FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
	WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id
		AND l.token IS NOT NULL
	RETURNING l.push_id`

// inTables adds a statement to the batch for each table of pushes that the rows belong to.
func (w *claimWrite) inTables(b *pgx.Batch, r *pushes.LiveRows, sql string, args func(r *pushes.LiveRows) []any) {
	for table, rows := range pg.ByTable(r.SendAt, w.pushes.At) {
		part := &pushes.LiveRows{}
		for _, i := range rows {
			part.Keys, part.SendAt, part.IDs = append(part.Keys, r.Keys[i]), append(part.SendAt, r.SendAt[i]), append(part.IDs, r.IDs[i])
			part.Plans, part.Times = append(part.Plans, r.Plans[i]), append(part.Times, r.Times[i])
			part.HeldBy = append(part.HeldBy, r.HeldBy[i])
			part.HeldSince, part.HeldUntil = append(part.HeldSince, r.HeldSince[i]), append(part.HeldUntil, r.HeldUntil[i])
		}
		b.Queue(pg.In(w.store.db.Joining(sql), "{pushes}", table), args(part)...)
	}
}

// claimWrite collects the changes of a group of claims.
type claimWrite struct {
	now     time.Time
	pushes  pg.Parts
	store   *Store
	claimed pushes.LiveRows
	putOff  pushes.LiveRows
	late    pushes.LiveRows
	refused pushes.LiveRows // the recipient has opted out
	asked   pushes.LiveRows // see booking.Withdrawn
	parked  pushes.LiveRows
	held    []uuid.UUID // the campaigns of parked
	paused  pushes.LiveRows
	pauses  []uuid.UUID // the pauses of paused

	rerouted, orphaned pushes.LiveRows // see booking.Rerouted and booking.Orphaned
	suppressed         pushes.LiveRows // see booking.Suppressed

	tokens    []uuid.UUID
	more      []bool
	addresses []*int64          // the keys of the addresses; nil: none
	busy      []pushes.LiveRow  // attempts under way to mark with flagSQL
	claims    map[uuid.UUID]int // the index of the claim, by the id of its push or of the attempt's push
}

func newClaimWrite(now time.Time, pushes pg.Parts, s *Store) *claimWrite {
	return &claimWrite{now: now, pushes: pushes, store: s, claims: map[uuid.UUID]int{}}
}

// add records the changes of the i-th claim, for this recipient key.
func (w *claimWrite) add(i int, key int64, c booking.Claim, d *booking.ClaimState) {
	row := pushes.LiveRow{Key: key, SendAt: c.Push.SendAt, ID: c.Push.ID, Plan: c.Push.Gen, Time: c.Push.NextAt, Held: c.Push.Held}
	switch c.Outcome {
	case booking.Nothing:
		for _, f := range d.InFlight {
			if d.Due.ID != uuid.Nil {
				w.busy = append(w.busy, pushes.LiveRow{Key: key, SendAt: f.Push.SendAt, ID: f.Push.ID})
				w.claims[f.Push.ID] = i
			}
		}
		return
	case booking.PutOff:
		w.putOff.Add(row)
	case booking.TooLate:
		w.late.Add(row)
	case booking.Unwanted:
		w.refused.Add(row)
	case booking.Withdrawn:
		w.asked.Add(row)
	case booking.Parked:
		if c.Pause != uuid.Nil {
			w.paused.Add(row)
			w.pauses = append(w.pauses, c.Pause)
			break
		}
		w.parked.Add(row)
		w.held = append(w.held, c.Push.Campaign)
	case booking.Rerouted:
		w.rerouted.Add(row)
	case booking.Orphaned:
		w.orphaned.Add(row)
	case booking.SuppressedNow:
		w.suppressed.Add(row)
	case booking.Claimed:
		if c.Repeated {
			return
		}
		row.Time = c.LeaseUntil
		w.claimed.Add(row)
		w.tokens, w.more, w.addresses = append(w.tokens, c.Token), append(w.more, d.More), append(w.addresses, pushes.AddressKey(&c.Push))
	default:
		return
	}
	w.claims[c.Push.ID] = i
}

// commit writes the changes and commits. Cancels, moves and finishes do not take the recipient's lock; a claim that one
// of them overtook becomes [booking.Again].
func (w *claimWrite) commit(ctx context.Context, c *pgxpool.Conn, claims []booking.Claim) error {
	b := &pgx.Batch{}
	if r := &w.claimed; len(r.IDs) > 0 {
		b.Queue(w.store.db.Joining(claimSQL), r.Keys, r.SendAt, r.IDs, r.Plans, r.Times, w.tokens, w.more, w.now, pg.ShardsOf(r.Keys...), w.addresses)
	}
	if len(w.busy) > 0 {
		slices.SortFunc(w.busy, func(a, b pushes.LiveRow) int { return bytes.Compare(a.ID[:], b.ID[:]) }) // as finishes lock them
		var r pushes.LiveRows
		for _, l := range w.busy {
			r.Add(l)
		}
		b.Queue(w.store.db.Joining(flagSQL), r.Keys, r.SendAt, r.IDs, pg.ShardsOf(r.Keys...))
	}
	w.inTables(b, &w.putOff, putOffSQL, func(r *pushes.LiveRows) []any {
		return []any{r.Keys, r.SendAt, r.IDs, r.Plans, r.Times, w.now, pg.ShardsOf(r.Keys...), r.HeldBy, r.HeldSince, r.HeldUntil}
	})
	if r := &w.parked; len(r.IDs) > 0 {
		b.Queue(w.store.db.Joining(parkDueSQL), r.Keys, r.SendAt, r.IDs, r.Plans, pg.ShardsOf(r.Keys...), w.held)
	}
	if r := &w.paused; len(r.IDs) > 0 {
		b.Queue(w.store.db.Joining(pauseDueSQL), r.Keys, r.SendAt, r.IDs, r.Plans, pg.ShardsOf(r.Keys...), w.pauses)
	}
	if r := &w.rerouted; len(r.IDs) > 0 {
		b.Queue(w.store.db.Joining(rerouteSQL), r.Keys, r.SendAt, r.IDs, r.Plans, pg.ShardsOf(r.Keys...))
	}
	over := func(r *pushes.LiveRows) []any { return []any{r.Keys, r.SendAt, r.IDs, r.Plans, pg.ShardsOf(r.Keys...)} }
	w.inTables(b, &w.late, tooLateSQL, over)
	w.inTables(b, &w.refused, UnwantedSQL, over)
	w.inTables(b, &w.asked, askedSQL, over)
	w.inTables(b, &w.orphaned, orphanedSQL, over)
	w.inTables(b, &w.suppressed, suppressedSQL, over)
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.ClaimCommitting)
	for range b.Len() - 1 {
		rows, _ := res.Query()
		written, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			_ = res.Close()
			return err
		}
		for _, id := range written {
			delete(w.claims, id)
		}
	}
	if err := res.Close(); err != nil {
		return err
	}
	for _, i := range w.claims {
		claims[i] = booking.Claim{Outcome: booking.Again}
	}
	return nil
}

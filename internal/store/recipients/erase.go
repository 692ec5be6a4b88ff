package recipients

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/schedules"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// An erasure leaves rows that neither name nor describe a person. Their recipient is empty, which no tenant's id is.
// Their recipient_key stays, so that pushes already sent still count for that key: queries of a recipient's bookings
// or attempts include the rows with an empty recipient. All other queries skip them.

// erasedColumns are the assignments that erase a row of pushes.
const erasedColumns = `recipient = '', address = '', address_key = NULL, message = '{}', metadata = NULL, rendering = NULL, request_id = ''`

var (
	// eraseWaitingSQL cancels and erases waiting pushes. eraseSQL erases the others.
	eraseWaitingSQL = attempts.OverSQL(push.Canceled, pushes.ErasedReason+`, `+erasedColumns)
	eraseSQL        = `
	UPDATE {pushes} p SET ` + erasedColumns + `, last_error = ` + pushes.UnlessErased("last_error", "''") + `
	WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])`
)

const (
	// findWaitingSQL finds the rows of live of a recipient's key after a position, and reports which of them are waiting
	// pushes of the tenant.
	findWaitingSQL = `
	SELECT l.send_at, l.push_id, l.plan, l.tenant_id = $2 AND l.token IS NULL FROM (
		SELECT * FROM live WHERE shard = ANY ($6::smallint[]) AND recipient_key = $1 AND (send_at, push_id) > ($3, $4) ORDER BY send_at, push_id LIMIT $5
	) l`

	// findPushesSQL finds the rows in a table of pushes of a recipient's key after a position, and reports which of them
	// are to be erased.
	findPushesSQL = `
	SELECT p.send_at, p.id, p.tenant_id = $2 AND p.recipient = $3 AND p.created_at <= $4 FROM (
		SELECT * FROM {pushes} p WHERE p.shard = ANY ($9::smallint[]) AND recipient_key = $1 AND freed = $5 AND (send_at, id) > ($6, $7) ORDER BY send_at, id LIMIT $8
	) p`

	// newerSQL finds the pushes that still bear the recipient's id after the others were erased: they were booked for
	// a recipient who came back. It also returns the time of its snapshot.
	newerSQL = `
	SELECT statement_timestamp(), ARRAY(SELECT p.id FROM (
		SELECT * FROM {pushes} p WHERE p.shard = ANY ($4::smallint[]) AND recipient_key = $1 AND freed IN (false, true)
		OFFSET 0 -- keeps the next line from choosing another index
	) p WHERE p.tenant_id = $2 AND p.recipient = $3)`

	// eraseSendsSQL erases attempts, except attempts of newer pushes.
	eraseSendsSQL = `
	UPDATE {sends} s SET recipient = '', provider_message_id = '', address_key = NULL, error = CASE WHEN error = '' THEN '' ELSE ` + pushes.ErasedReason + ` END
	WHERE s.shard = ANY ($4::smallint[]) AND recipient_key = $1 AND tenant_id = $2 AND recipient = $3 AND started_at <= $5 AND push_id <> ALL ($6::uuid[])`

	// eraseEventsSQL reduces events of pushes to their type, their time and the id of the push.
	eraseEventsSQL = `
	UPDATE webhook_deliveries d SET payload = json_build_object('type', d.event, 'timestamp', utc(d.created_at), 'data', json_build_object('id', d.push_id, 'erased', true))
	WHERE d.webhook_id IN (SELECT id FROM webhooks WHERE tenant_id = $1) AND d.push_id = ANY ($2::uuid[])`
)

// erasedPerTx is the number of pushes that one transaction erases.
const erasedPerTx = 1000

// erasure is the erasure of one recipient.
type erasure struct {
	*Store
	who    quota.Recipient
	key    int64
	shards []int16
	until  time.Time // pushes booked later belong to a recipient who came back

	newerAsOf time.Time   // attempts that began later belong to newer pushes, or have no recipient
	newer     []uuid.UUID // the pushes of a recipient who came back

	entry uuid.UUID // the id of the entry in the audit log

	booking.Erased
}

// Erase forgets a recipient: it cancels the waiting pushes, and removes the recipient's data from every table.
// Attempts under way finish normally. It works in small steps; if it fails, call it again to continue. Pushes that
// are booked for the same id after the first step stay.
func (s *Store) Erase(ctx context.Context, who quota.Recipient) (booking.Erased, error) {
	e := s.newErasure(who)
	for _, step := range e.steps() {
		if err := step(ctx); err != nil {
			return e.Erased, err
		}
	}
	return e.Erased, nil
}

// newErasure returns an erasure that has not begun.
func (s *Store) newErasure(who quota.Recipient) *erasure {
	key := push.RecipientKey(who.Tenant, who.ID)
	return &erasure{Store: s, who: who, key: key, shards: pg.ShardsOf(key), entry: uuid.New()}
}

// steps lists the steps of an erasure in order. Waiting pushes are canceled twice, because an attempt under way
// during the first pass may leave its push waiting.
func (e *erasure) steps() []func(context.Context) error {
	return []func(context.Context) error{e.begin, e.cancelWaiting, e.erasePushes, e.cancelWaiting, e.findNewer, e.eraseSends, e.eraseLog}
}

// begin deletes suppressions, the recipient's schedules, entries in lists, and description. Pushes that are booked later belong to
// a recipient who came back.
func (e *erasure) begin(ctx context.Context) error {
	for _, step := range []func(context.Context) error{e.eraseSuppressions, e.deleteSchedules, e.eraseLists, e.deleteDescription} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// eraseSuppressionsSQL deletes the suppressions of the addresses that the recipient has, or that its pushes have, unless another recipient
// of the tenant has the address.
const eraseSuppressionsSQL = `
	WITH theirs (key) AS MATERIALIZED (
		SELECT unnest(r.address_keys) FROM recipients r WHERE r.shard = ANY ($4::smallint[]) AND r.recipient_key = $1 AND r.tenant_id = $2 AND r.recipient = $3
		UNION
		SELECT p.address_key FROM (
			SELECT * FROM pushes p WHERE p.shard = ANY ($4::smallint[]) AND p.recipient_key = $1 AND p.freed IN (false, true)
			OFFSET 0 -- keeps the next line from choosing another index
		) p WHERE p.tenant_id = $2 AND p.recipient = $3 AND p.address_key IS NOT NULL
	)
	DELETE FROM suppressions s USING theirs
	WHERE s.address_key = theirs.key AND s.tenant_id = $2
		AND NOT EXISTS (SELECT FROM recipients o WHERE o.tenant_id = $2 AND o.address_keys @> ARRAY[theirs.key] AND o.recipient <> $3)`

// eraseSuppressions deletes suppressions. It comes first, because later steps remove the addresses. An index on lists needs bitmap scans.
func (e *erasure) eraseSuppressions(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL enable_bitmapscan = on`); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, eraseSuppressionsSQL, e.key, e.who.Tenant, e.who.ID, e.shards)
			e.Rows += int(tag.RowsAffected())
			return err
		})
	})
}

// deleteSchedules deletes the recipient's schedules. It waits for occurrences that are being submitted. These need
// the recipient's lock, so it must not hold that lock.
func (e *erasure) deleteSchedules(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, `UPDATE schedules SET `+schedules.DeletedSchedule+` WHERE tenant_id = $1 AND deleted_at IS NULL AND recipient_key = $2`,
			e.who.Tenant, e.key)
		e.Rows += int(tag.RowsAffected())
		return err
	})
}

// eraseLists erases the recipient from campaigns and bulk changes.
func (e *erasure) eraseLists(ctx context.Context) error {
	for _, step := range []func(context.Context, quota.Recipient) (int, error){e.campaigns.EraseLines, e.bulk.EraseFromBulk} {
		rows, err := step(ctx, e.who)
		if e.Rows += rows; err != nil {
			return err
		}
	}
	return nil
}

// deleteDescription deletes the recipient's description, sets until, and writes the entry of the audit log.
func (e *erasure) deleteDescription(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		b, known := &pgx.Batch{}, int64(0)
		b.Queue(`begin isolation level read committed`)
		e.db.Locking(false).Queue(b, []int64{e.key})
		b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&e.until) })
		deleted := b.Queue(`DELETE FROM recipients r WHERE r.shard = ANY ($4::smallint[]) AND r.recipient_key = $1 AND r.tenant_id = $2 AND r.recipient = $3 RETURNING 1`,
			e.key, e.who.Tenant, e.who.ID, e.shards)
		e.queueEntry(ctx, b)
		deleted.Query(func(rows pgx.Rows) error {
			all, err := pgx.CollectRows(rows, pgx.RowTo[int])
			known = int64(len(all))
			return err
		})
		b.Queue(`commit`)
		err := c.SendBatch(ctx, b).Close()
		if err == nil {
			e.Rows += int(known)
		}
		return err
	})
}

// cancelWaiting cancels and erases the waiting pushes under the recipient's lock.
func (e *erasure) cancelWaiting(ctx context.Context) error {
	var last push.Position
	for done := false; !done; {
		var (
			canceled []pushes.LiveRow
			events   int
			next     push.Position
		)
		err := e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			canceled, events, next = nil, 0, last
			var (
				now   time.Time
				found []pushes.LiveRow
				n     int
			)
			b := &pgx.Batch{}
			b.Queue(`begin isolation level read committed`)
			e.db.Locking(false).Queue(b, []int64{e.key})
			b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
			b.Queue(findWaitingSQL, e.key, e.who.Tenant, last.SendAt, last.ID, erasedPerTx, e.shards).Query(func(rows pgx.Rows) error {
				l, waits := pushes.LiveRow{Key: e.key}, false
				_, err := pgx.ForEachRow(rows, []any{&l.SendAt, &l.ID, &l.Plan, &waits}, func() error {
					if n, next = n+1, (push.Position{SendAt: l.SendAt, ID: l.ID}); waits {
						found = append(found, l)
					}
					return nil
				})
				return err
			})
			if err := c.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			done = n < erasedPerTx
			_, err := e.pushes.CancelSome(ctx, c, eraseWaitingSQL, found, func(p pushes.Waiting) bool { return p.Recipient == e.who.ID && !p.CreatedAt.After(e.until) },
				func(_ string, l pushes.LiveRow) { canceled = append(canceled, l) })
			if err != nil {
				return err
			}
			if events, err = e.eraseEvents(ctx, c, canceled, now); err != nil {
				return err
			}
			_, err = c.Exec(ctx, `commit`)
			return err
		})
		if err != nil {
			return err
		}
		for _, l := range canceled {
			e.Canceled.Cancel(l.SendAt)
		}
		e.Rows += len(canceled) + events
		last = next
	}
	return nil
}

// eraseEvents erases the webhook events of some pushes, delivered or not, that were created before now. It returns
// the number of events.
func (e *erasure) eraseEvents(ctx context.Context, c *pgxpool.Conn, of []pushes.LiveRow, now time.Time) (int, error) {
	if len(of) == 0 {
		return 0, nil
	}
	ids := make([]uuid.UUID, len(of))
	for i, l := range of {
		ids[i] = l.ID
	}
	tag, err := c.Exec(ctx, eraseEventsSQL+` AND d.created_at < $3`, e.who.Tenant, ids, now)
	return int(tag.RowsAffected()), err
}

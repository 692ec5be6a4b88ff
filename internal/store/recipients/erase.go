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

// What is left of an erased recipient are rows without anything that names or describes a person: the recipient is empty, as
// no id of a tenant is. Their recipient_key stays, so that what was sent still counts for the recipient of that key: whoever
// reads bookings or attempts of a recipient counts those of nobody, too. Nobody else sees them.

// erasedColumns are what changes in the row of a push.
const erasedColumns = `recipient = '', address = '', message = '{}', metadata = NULL, rendering = NULL, request_id = ''`

var (
	// eraseWaitingSQL cancels pushes that wait, and erases them. eraseSQL erases what does not wait.
	eraseWaitingSQL = attempts.OverSQL(push.Canceled, pushes.ErasedReason+`, `+erasedColumns)
	eraseSQL        = `
	UPDATE {pushes} p SET ` + erasedColumns + `, last_error = ` + pushes.UnlessErased("last_error", "''") + `
	WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])`
)

const (
	// waitsSQL finds what waits for a recipient, behind a position.
	waitsSQL = `
	SELECT l.send_at, l.push_id, l.plan, l.tenant_id = $2 AND l.token IS NULL FROM (
		SELECT * FROM live WHERE shard = ANY ($6::smallint[]) AND recipient_key = $1 AND (send_at, push_id) > ($3, $4) ORDER BY send_at, push_id LIMIT $5
	) l`

	// theirsSQL finds what there is of a recipient in a table of pushes, behind a position.
	theirsSQL = `
	SELECT p.send_at, p.id, p.tenant_id = $2 AND p.recipient = $3 AND p.created_at <= $4 FROM (
		SELECT * FROM {pushes} p WHERE p.shard = ANY ($9::smallint[]) AND recipient_key = $1 AND freed = $5 AND (send_at, id) > ($6, $7) ORDER BY send_at, id LIMIT $8
	) p`

	// sinceSQL finds the pushes that bear the recipient's id when the others are erased: those of one who came back. It says when it
	// looked.
	sinceSQL = `
	SELECT statement_timestamp(), ARRAY(SELECT p.id FROM (
		SELECT * FROM {pushes} p WHERE p.shard = ANY ($4::smallint[]) AND recipient_key = $1 AND freed IN (false, true)
		OFFSET 0 -- keeps the next line from choosing another index
	) p WHERE p.tenant_id = $2 AND p.recipient = $3)`

	eraseSendsSQL = `
	UPDATE {sends} s SET recipient = '', provider_message_id = '', error = CASE WHEN error = '' THEN '' ELSE ` + pushes.ErasedReason + ` END
	WHERE s.shard = ANY ($4::smallint[]) AND recipient_key = $1 AND tenant_id = $2 AND recipient = $3 AND started_at <= $5 AND push_id <> ALL ($6::uuid[])`

	// eraseEventsSQL leaves of the events of pushes what they are and which push they are about.
	eraseEventsSQL = `
	UPDATE webhook_deliveries d SET payload = json_build_object('type', d.event, 'timestamp', utc(d.created_at), 'data', json_build_object('id', d.push_id, 'erased', true))
	WHERE d.webhook_id IN (SELECT id FROM webhooks WHERE tenant_id = $1) AND d.push_id = ANY ($2::uuid[])`
)

// erasedAtOnce is how many pushes one transaction erases.
const erasedAtOnce = 1000

// erasure is a recipient that is being erased.
type erasure struct {
	*Store
	who    quota.Recipient
	key    int64
	shards []int16
	until  time.Time // what was booked later is of a recipient who came back

	looked time.Time   // attempts that began later are of such pushes, or bear no id
	later  []uuid.UUID // such pushes

	entry uuid.UUID // of the audit log

	booking.Erased
}

// Erase forgets a recipient: what waits is canceled, and what was said of the recipient leaves every table. Attempts under way
// end as they will. It goes in small steps; if it fails, it can be called again, and goes on. What is booked for the same id once
// the first step is done stays.
func (s *Store) Erase(ctx context.Context, who quota.Recipient) (booking.Erased, error) {
	e := s.newErasure(who)
	for _, step := range e.steps() {
		if err := step(ctx); err != nil {
			return e.Erased, err
		}
	}
	return e.Erased, nil
}

func (s *Store) newErasure(who quota.Recipient) *erasure {
	key := push.RecipientKey(who.Tenant, who.ID)
	return &erasure{Store: s, who: who, key: key, shards: pg.ShardsOf(key), entry: uuid.New()}
}

// steps are those of an erasure, in their order. What waited for an attempt under way is looked for again.
func (e *erasure) steps() []func(context.Context) error {
	return []func(context.Context) error{e.begin, e.waiting, e.ended, e.waiting, e.since, e.sends, e.log}
}

// begin deletes what was said of the recipient. What is booked later is of one who comes back.
func (e *erasure) begin(ctx context.Context) error {
	for _, step := range []func(context.Context) error{e.schedules, e.elsewhere, e.description} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// schedules deletes those that are for the recipient. It waits for occurrences that are submitted now, and takes no lock of the
// recipient, which these need.
func (e *erasure) schedules(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, `UPDATE schedules SET `+schedules.DeletedSchedule+` WHERE tenant_id = $1 AND deleted_at IS NULL AND recipient_key = $2`,
			e.who.Tenant, e.key)
		e.Rows += int(tag.RowsAffected())
		return err
	})
}

// elsewhere erases the recipient's lines of campaigns and bulk changes.
func (e *erasure) elsewhere(ctx context.Context) error {
	for _, step := range []func(context.Context, quota.Recipient) (int, error){e.campaigns.EraseLines, e.bulk.EraseFromBulk} {
		rows, err := step(ctx, e.who)
		if e.Rows += rows; err != nil {
			return err
		}
	}
	return nil
}

// description erases what the tenant said of the recipient.
func (e *erasure) description(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		b, known := &pgx.Batch{}, int64(0)
		b.Queue(`begin isolation level read committed`)
		e.db.Locking(false).Queue(b, []int64{e.key})
		b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&e.until) })
		deleted := b.Queue(`DELETE FROM recipients r WHERE r.shard = ANY ($4::smallint[]) AND r.recipient_key = $1 AND r.tenant_id = $2 AND r.recipient = $3 RETURNING 1`,
			e.key, e.who.Tenant, e.who.ID, e.shards)
		e.queueLogged(ctx, b)
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

// waiting cancels and erases what waits, under the recipient's lock.
func (e *erasure) waiting(ctx context.Context) error {
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
			b.Queue(waitsSQL, e.key, e.who.Tenant, last.SendAt, last.ID, erasedAtOnce, e.shards).Query(func(rows pgx.Rows) error {
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
			done = n < erasedAtOnce
			_, err := e.pushes.CancelSome(ctx, c, eraseWaitingSQL, found, func(p pushes.Waits) bool { return p.Recipient == e.who.ID && !p.CreatedAt.After(e.until) },
				func(_ string, l pushes.LiveRow) { canceled = append(canceled, l) })
			if err != nil {
				return err
			}
			if events, err = e.events(ctx, c, canceled, now); err != nil {
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

// events erases what webhooks were told, or are to be told, of pushes until now; and reports of how many events.
func (e *erasure) events(ctx context.Context, c *pgxpool.Conn, of []pushes.LiveRow, now time.Time) (int, error) {
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

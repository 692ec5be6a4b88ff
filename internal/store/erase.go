package store

import (
	"context"
	"slices"
	"strings"
	"time"

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
const erasedColumns = `recipient = '', address = '', message = '{}', metadata = NULL, request_id = ''`

// erasedReason is in the place of errors, which may quote an address.
const erasedReason = `'erased'`

var (
	// eraseWaitingSQL cancels pushes that wait, and erases them. eraseSQL erases what does not wait.
	eraseWaitingSQL = tells(strings.NewReplacer("{status}", string(push.Canceled), "last_error = '{reason}'", "last_error = "+erasedReason+", "+erasedColumns).Replace(over),
		`ended`, becomes(push.Canceled))
	eraseSQL = `
	UPDATE {pushes} p SET ` + erasedColumns + `, last_error = ` + unlessErased("last_error", "''") + `
	WHERE {p.shard} = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])`
)

// unlessErased keeps a text of an attempt from the row of an erased recipient.
func unlessErased(text, recipient string) string {
	return `CASE WHEN ` + recipient + ` = '' AND ` + text + ` <> '' THEN ` + erasedReason + ` ELSE ` + text + ` END`
}

const (
	// waitsSQL finds what waits for a recipient, behind a position.
	waitsSQL = `
	SELECT l.send_at, l.push_id, l.plan, l.tenant_id = $2 AND l.token IS NULL FROM (
		SELECT * FROM live WHERE shard = ANY ($6::smallint[]) AND recipient_key = $1 AND (send_at, push_id) > ($3, $4) ORDER BY send_at, push_id LIMIT $5
	) l`

	// theirsSQL finds what there is of a recipient in a table of pushes, behind a position.
	theirsSQL = `
	SELECT p.send_at, p.id, p.tenant_id = $2 AND p.recipient = $3 AND p.created_at <= $4 FROM (
		SELECT * FROM {pushes} p WHERE {p.shard} = ANY ($9::smallint[]) AND recipient_key = $1 AND freed = $5 AND (send_at, id) > ($6, $7) ORDER BY send_at, id LIMIT $8
	) p`

	eraseSendsSQL = `
	UPDATE {sends} s SET recipient = '', provider_message_id = '', error = CASE WHEN error = '' THEN '' ELSE ` + erasedReason + ` END
	WHERE {s.shard} = ANY ($4::smallint[]) AND recipient_key = $1 AND tenant_id = $2 AND recipient = $3`

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
	booking.Erased
}

// Erase forgets a recipient: what waits is canceled, and what was said of the recipient leaves every table. Attempts under way
// end as they will. It goes in small steps; if it fails, it can be called again, and goes on.
func (s *Store) Erase(ctx context.Context, who quota.Recipient) (booking.Erased, error) {
	key := push.RecipientKey(who.Tenant, who.ID)
	e := &erasure{Store: s, who: who, key: key, shards: shardsOf(key)}
	for _, step := range []func(context.Context) error{e.schedules, e.campaigns, e.description, e.waiting, e.pushes, e.waiting, e.sends} {
		if err := step(ctx); err != nil {
			return e.Erased, err
		}
	}
	return e.Erased, nil
}

// schedules deletes those that are for the recipient. It waits for occurrences that are submitted now, and takes no lock of the
// recipient, which these need.
func (e *erasure) schedules(ctx context.Context) error {
	return e.change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, `UPDATE schedules SET `+deletedSchedule+` WHERE tenant_id = $1 AND deleted_at IS NULL AND recipient_key = $2`,
			[16]byte(e.who.Tenant), e.key)
		e.Rows += int(tag.RowsAffected())
		return err
	})
}

// description erases what the tenant said of the recipient.
func (e *erasure) description(ctx context.Context) error {
	return e.change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		b, known := &pgx.Batch{}, int64(0)
		b.Queue(`begin isolation level read committed`)
		e.locking(false).queue(b, []int64{e.key})
		b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&e.until) })
		deleted := b.Queue(`DELETE FROM recipients r WHERE r.shard = ANY ($4::smallint[]) AND r.recipient_key = $1 AND r.tenant_id = $2 AND r.recipient = $3 RETURNING 1`,
			e.key, [16]byte(e.who.Tenant), e.who.ID, e.shards)
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
			canceled []time.Time
			events   int
			next     push.Position
		)
		err := e.change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			canceled, events, next = nil, 0, last
			var (
				now   time.Time
				found []liveRow
				n     int
			)
			b := &pgx.Batch{}
			b.Queue(`begin isolation level read committed`)
			e.locking(false).queue(b, []int64{e.key})
			b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
			b.Queue(waitsSQL, e.key, [16]byte(e.who.Tenant), last.SendAt, [16]byte(last.ID), erasedAtOnce, e.shards).Query(func(rows pgx.Rows) error {
				l, waits := liveRow{key: e.key}, false
				_, err := pgx.ForEachRow(rows, []any{&l.sendAt, (*[16]byte)(&l.id), &l.plan, &waits}, func() error {
					if n, next = n+1, (push.Position{SendAt: l.sendAt, ID: l.id}); waits {
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
			_, err := e.cancelSome(ctx, c, eraseWaitingSQL, now, found, func(recipient string, _ quota.Kind) bool { return recipient == e.who.ID }, func(_ string, l liveRow) {
				canceled = append(canceled, l.sendAt)
			})
			if err != nil {
				return err
			}
			if events, err = e.events(ctx, c, found, now); err != nil {
				return err
			}
			_, err = c.Exec(ctx, `commit`)
			return err
		})
		if err != nil {
			return err
		}
		for _, at := range canceled {
			e.Canceled.Cancel(at)
		}
		e.Rows += len(canceled) + events
		last = next
	}
	return nil
}

// events erases what webhooks were told, or are to be told, of pushes until now; and reports of how many events.
func (e *erasure) events(ctx context.Context, c *pgxpool.Conn, of []liveRow, now time.Time) (int, error) {
	if len(of) == 0 {
		return 0, nil
	}
	ids := make([][16]byte, len(of))
	for i, l := range of {
		ids[i] = l.id
	}
	tag, err := c.Exec(ctx, eraseEventsSQL+` AND d.created_at < $3`, [16]byte(e.who.Tenant), ids, now)
	return int(tag.RowsAffected()), err
}

// pushes erases the pushes that do not wait.
func (e *erasure) pushes(ctx context.Context) error {
	tables := []string{weeksOfPushes.parent}
	if p := e.layouts.pushes(); p.others == 0 {
		tables = p.between(time.Time{}, booking.EndOfTime)
	}
	for _, table := range tables {
		for _, freed := range []bool{false, true} {
			if err := e.pushesIn(ctx, table, freed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *erasure) pushesIn(ctx context.Context, table string, freed bool) error {
	var last push.Position
	for done := false; !done; {
		var (
			rows int
			next push.Position
		)
		err := e.change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			rows, next = 0, last
			found, n, err := e.theirs(ctx, c, table, freed, &next)
			if done = n < erasedAtOnce; err != nil || len(found) == 0 {
				return err
			}
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				ids := make([][16]byte, len(found))
				for i, l := range found {
					ids[i] = l.id
				}
				tag, err := tx.Exec(ctx, in(eraseSQL, "{pushes}", table), ids, e.shards)
				if err != nil {
					return err
				}
				events, err := e.events(ctx, c, found, booking.EndOfTime)
				rows = int(tag.RowsAffected()) + events
				return err
			})
		})
		if err != nil {
			return err
		}
		e.Rows += rows
		last = next
	}
	return nil
}

// theirs finds pushes of the recipient behind a position, which it moves. It returns how many rows it has looked at, too.
func (e *erasure) theirs(ctx context.Context, c *pgxpool.Conn, table string, freed bool, after *push.Position) (found []liveRow, n int, err error) {
	rows, _ := c.Query(ctx, in(theirsSQL, "{pushes}", table),
		e.key, [16]byte(e.who.Tenant), e.who.ID, e.until, freed, after.SendAt, [16]byte(after.ID), erasedAtOnce, e.shards)
	var (
		l     liveRow
		their bool
	)
	_, err = pgx.ForEachRow(rows, []any{&l.sendAt, (*[16]byte)(&l.id), &their}, func() error {
		if n, *after = n+1, (push.Position{SendAt: l.sendAt, ID: l.id}); their {
			found = append(found, l)
		}
		return nil
	})
	return found, n, err
}

// sendsAtOnce is of how many days one exchange erases the attempts.
const sendsAtOnce = 16

// sends erases the attempts.
func (e *erasure) sends(ctx context.Context) error {
	tables := []string{daysOfSends.parent}
	if s := e.layouts.sends(); s.others == 0 {
		tables = s.between(time.Time{}, time.Now().Add(clockGap))
	}
	for some := range slices.Chunk(tables, sendsAtOnce) {
		rows := 0
		err := e.change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			rows = 0
			b := &pgx.Batch{}
			for _, table := range some {
				b.Queue(in(eraseSendsSQL, "{sends}", table), e.key, [16]byte(e.who.Tenant), e.who.ID, e.shards)
			}
			res := c.SendBatch(ctx, b)
			for range some {
				tag, err := res.Exec()
				if err != nil {
					_ = res.Close()
					return err
				}
				rows += int(tag.RowsAffected())
			}
			return res.Close()
		})
		if err != nil {
			return err
		}
		e.Rows += rows
	}
	return nil
}

// erased reports whether a push is of a recipient who was erased.
func erased(p push.Push) bool { return p.ID != uuid.Nil && p.Recipient == "" }

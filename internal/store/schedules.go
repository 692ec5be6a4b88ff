package store

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

const scheduleColumns = `p.id, p.tenant_id, p.name, p.cron, p.time_zone, p.push, p.campaign_id, p.catch_up, p.paused, p.until, p.began_at, p.done_at, p.next_at, p.created_at, p.updated_at`

func collectSchedule(row pgx.CollectableRow) (push.Schedule, error) { return scanSchedule(row) }

// scanSchedule reads one row of [scheduleColumns], and what follows them into more.
func scanSchedule(row pgx.CollectableRow, more ...any) (p push.Schedule, err error) {
	err = row.Scan(append([]any{&p.ID, &p.Tenant, &p.Name, &p.Cron, &p.TimeZone, &p.Pattern, (*zeronull.UUID)(&p.Campaign), (*string)(&p.CatchUp), &p.Paused,
		(*zeronull.Timestamptz)(&p.Until), &p.Began, &p.Done, (*zeronull.Timestamptz)(&p.NextAt), &p.CreatedAt, &p.UpdatedAt}, more...)...)
	return p, err
}

// NewSchedule is a schedule that is to be made.
type NewSchedule struct {
	push.Schedule
	RequestHash []byte // of a request with an Idempotency-Key, from which the id follows
	Most        int    // that the tenant may have
	Invalid     error  // what is wrong with it, unless an earlier request has made it; nil: nothing
}

// CreateSchedule makes a schedule that begins as start says, by Postgres' clock; or finds the one that an earlier request
// with the same Idempotency-Key has made. Its errors are [push.ErrTooManySchedules], what is wrong with it, [push.ErrNoPattern],
// and [push.ErrKeyReused] if that was another request.
func (s *Store) CreateSchedule(ctx context.Context, n NewSchedule, start func(p push.Schedule, now time.Time) push.Schedule) (p push.Schedule, found bool, err error) {
	err = s.change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var now time.Time
			err := tx.QueryRow(ctx, `SELECT clock_timestamp() FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant).Scan(&now) // one at a time
			if err != nil {
				return err
			}
			if p, found, err = findSchedule(ctx, tx, n); found || err != nil {
				found = found && earlier == 0 // an earlier run may have made it
				return err
			}
			if n.Invalid != nil {
				return n.Invalid
			}
			var others int
			err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM schedules WHERE tenant_id = $1 AND deleted_at IS NULL LIMIT $2) s`, n.Tenant, n.Most).Scan(&others)
			if err != nil {
				return err
			}
			if others >= n.Most {
				return push.ErrTooManySchedules
			}
			if err := keepPattern(ctx, tx, &n.Schedule); err != nil {
				return err
			}
			p = start(n.Schedule, now)
			pattern, err := patternText(p.Pattern)
			if err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, `
				INSERT INTO schedules AS p (id, tenant_id, name, cron, time_zone, push, catch_up, paused, until, began_at, done_at, next_at, request_hash, created_at, updated_at, recipient_key, campaign_id)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15, $16) RETURNING `+scheduleColumns,
				p.ID, p.Tenant, p.Name, p.Cron, p.TimeZone, pattern, string(p.CatchUp), p.Paused, zeronull.Timestamptz(p.Until),
				p.Began, p.Done, zeronull.Timestamptz(p.NextAt), n.RequestHash, now, patternKey(&p), zeronull.UUID(p.Campaign))
			if p, err = pgx.CollectExactlyOneRow(rows, collectSchedule); err != nil {
				return err
			}
			return record(ctx, tx, p.Tenant, push.ActScheduleCreate, p.ID.String(), scheduleChanged(push.Schedule{}, p))
		})
	})
	return p, found, err
}

// findSchedule looks for what an earlier request has made.
func findSchedule(ctx context.Context, tx pgx.Tx, n NewSchedule) (p push.Schedule, found bool, err error) {
	var (
		hash    []byte
		deleted bool
	)
	rows, _ := tx.Query(ctx, `SELECT `+scheduleColumns+`, p.request_hash, p.deleted_at IS NOT NULL FROM schedules p WHERE id = $1`, n.ID)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (push.Schedule, error) { return scanSchedule(row, &hash, &deleted) })
	switch {
	case err != nil || len(all) == 0:
		return p, false, err
	case all[0].Tenant != n.Tenant || !bytes.Equal(hash, n.RequestHash):
		return p, false, push.ErrKeyReused
	case deleted:
		return p, false, push.ErrNotFound
	}
	return all[0], true, nil
}

// Schedule returns a tenant's schedule, or [push.ErrNotFound].
func (s *Store) Schedule(ctx context.Context, tenant, id uuid.UUID) (p push.Schedule, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		rows, _ := c.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules p WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL`, id, tenant)
		p, err = pgx.CollectExactlyOneRow(rows, collectSchedule)
		return err
	})
	return p, err
}

// Schedules returns up to limit of a tenant's schedules behind one of them, by their ids. As of [Store.List], there may be
// fewer.
func (s *Store) Schedules(ctx context.Context, tenant, after uuid.UUID, limit int) (page push.SchedulePage, err error) {
	q := pageQuery{
		limit: limit, scan: limit + 1, item: "SELECT * FROM schedules WHERE id = s.id", columns: scheduleColumns, position: "p.id", order: "p.id", backward: "p.id DESC",
		size: `octet_length(p.push::text) + 500`, args: []any{tenant, after, limit + 1},
		scanned: `SELECT p.id, true AS fits FROM schedules p WHERE p.tenant_id = $1 AND p.id > $2 AND p.deleted_at IS NULL ORDER BY p.id LIMIT $3`,
	}
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		var last uuid.UUID
		rows, _ := c.Query(ctx, q.sql(), q.args...)
		schedules, next, _, err := collectPage(rows, q, &last, []any{&last}, func(p push.Schedule) uuid.UUID { return p.ID }, scanSchedule)
		if page = (push.SchedulePage{Schedules: schedules}); next != nil {
			page.Next = *next
		}
		return err
	})
	return page, err
}

// ScheduleChange changes a schedule, and says what becomes of occurrences, at a time of Postgres' clock. again says that
// the change is not made yet: there are more occurrences before it.
type ScheduleChange func(p push.Schedule, now time.Time) (changed push.Schedule, runs []push.Run, again bool)

// ChangeSchedule changes a tenant's schedule under its lock, or returns [push.ErrNotFound], [push.ErrNoPattern] or, unless nothing
// changes, [*push.StaleError]. An occurrence that is being submitted is waited for.
func (s *Store) ChangeSchedule(ctx context.Context, tenant, id uuid.UUID, unchanged push.Unchanged, change ScheduleChange) (p push.Schedule, err error) {
	for again := true; again && err == nil; unchanged = nil {
		err = s.change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				var now time.Time
				rows, _ := tx.Query(ctx, `SELECT `+scheduleColumns+`, clock_timestamp() FROM schedules p
					WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`, id, tenant)
				p, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (push.Schedule, error) { return scanSchedule(row, &now) })
				if err != nil {
					return err
				}
				var runs []push.Run
				old := p
				p, runs, again = change(p, now)
				d := scheduleChanged(old, p)
				if stale := unchanged.Check(old.UpdatedAt); stale != nil && (again || len(d) > 0) { // an earlier run may have made it
					return stale
				}
				if p.Campaign != old.Campaign {
					if err := keepPattern(ctx, tx, &p); err != nil {
						return err
					}
				}
				b := &pgx.Batch{}
				queueRuns(b, tenant, runs)
				if err := queueSchedule(b, &p, now); err != nil {
					return err
				}
				if len(d) > 0 {
					queueRecord(b, push.ActorOf(ctx), tenant, push.ActScheduleChange, id.String(), d)
				}
				return tx.SendBatch(ctx, b).Close()
			})
		})
	}
	return p, err
}

// scheduleChanged is what the audit log says of a change. Of what is sent, and for whom, it says only that it has changed; so of the
// name, which may be that of a recipient.
func scheduleChanged(old, p push.Schedule) difference {
	d := difference{}
	d.hide("name", old.Name, p.Name)
	d.show("cron", old.Cron, p.Cron)
	d.show("time_zone", old.TimeZone, p.TimeZone)
	d.hide("push", old.Pattern, p.Pattern)
	d.show("campaign", maybeID(old.Campaign), maybeID(p.Campaign))
	d.show("catch_up", old.CatchUp, p.CatchUp)
	d.show("paused", old.Paused, p.Paused)
	d.show("until", old.Until, p.Until)
	return d
}

// queueSchedule writes all of a schedule that can change.
func queueSchedule(b *pgx.Batch, p *push.Schedule, now time.Time) error {
	pattern, err := patternText(p.Pattern)
	if err != nil {
		return err
	}
	p.UpdatedAt = now
	b.Queue(`UPDATE schedules SET name = $2, cron = $3, time_zone = $4, push = $5, catch_up = $6, paused = $7, until = $8,
			began_at = $9, done_at = $10, next_at = $11, updated_at = $12, recipient_key = $13, campaign_id = $14 WHERE id = $1`,
		p.ID, p.Name, p.Cron, p.TimeZone, pattern, string(p.CatchUp), p.Paused, zeronull.Timestamptz(p.Until),
		p.Began, p.Done, zeronull.Timestamptz(p.NextAt), now, patternKey(p), zeronull.UUID(p.Campaign))
	return nil
}

// patternKey is by which an erasure finds the schedules of a recipient; nil: it is of a campaign.
func patternKey(p *push.Schedule) *int64 {
	if p.Campaign != uuid.Nil {
		return nil
	}
	return new(push.RecipientKey(p.Tenant, p.Pattern.Recipient))
}

// patternText writes a pattern, in which strings stay as callers wrote them.
func patternText(p push.Pattern) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(p)
	return text.Bytes(), err
}

// deletedSchedule is what a deletion leaves of a schedule until its runs are removed.
const deletedSchedule = `deleted_at = clock_timestamp(), next_at = NULL, name = '', push = '{}', campaign_id = NULL`

// DeleteSchedule ends a schedule, and forgets what it sent. Once it has returned without an error, no occurrence is
// submitted any more: one that is being submitted is waited for. Its rows are swept away.
func (s *Store) DeleteSchedule(ctx context.Context, tenant, id uuid.UUID) error {
	deleted := func(ctx context.Context, tx pgx.Tx, _ bool) error {
		return record(ctx, tx, tenant, push.ActScheduleDelete, id.String(), nil)
	}
	_, err := recordOnce(ctx, s, tenant, pgx.RowTo[bool], deleted, `
		UPDATE schedules SET `+deletedSchedule+`
		WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL RETURNING true`, id, tenant)
	return err
}

// AllSchedules calls each with the schedules of a tenant, or of all tenants if that is Nil: by tenant and id.
func (s *Store) AllSchedules(ctx context.Context, tenant uuid.UUID, each func(tenant string, p push.Schedule) error) error {
	const portion = 100
	last := push.Schedule{Tenant: tenant}
	for n := portion; n == portion; {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		rows, _ := s.pool.Query(ctx, `
			SELECT `+scheduleColumns+`, t.name FROM schedules p JOIN tenants t ON t.id = p.tenant_id
			WHERE (p.tenant_id, p.id) > ($1, $2) AND p.deleted_at IS NULL AND ($3 OR p.tenant_id = $1)
			ORDER BY p.tenant_id, p.id LIMIT $4`, last.Tenant, last.ID, tenant == uuid.Nil, portion)
		var name string
		n = 0
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t tenantSchedule, err error) {
			t.Schedule, err = scanSchedule(row, &name)
			t.name = name
			return t, err
		})
		cancel()
		if err != nil {
			return classify(err)
		}
		for _, one := range all {
			if err := each(one.name, one.Schedule); err != nil {
				return err
			}
			last, n = one.Schedule, n+1
		}
	}
	return nil
}

type tenantSchedule struct {
	push.Schedule
	name string // of its tenant
}

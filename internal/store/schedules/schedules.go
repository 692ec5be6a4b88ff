// Package schedules keeps recurring schedules and their occurrences.
package schedules

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
	"github.com/sendquota/sendquota/internal/store/auditlog"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store keeps schedules.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}

// scheduleColumns are the columns that scanSchedule reads, of schedules p.
const scheduleColumns = `p.id, p.tenant_id, p.name, p.cron, p.time_zone, p.push, p.campaign_id, p.catch_up, p.paused, p.until, p.began_at, p.done_at, p.next_at, p.created_at, p.updated_at`

func collectSchedule(row pgx.CollectableRow) (push.Schedule, error) { return scanSchedule(row) }

// scanSchedule reads one row of [scheduleColumns], and the columns after them into more.
func scanSchedule(row pgx.CollectableRow, more ...any) (p push.Schedule, err error) {
	err = row.Scan(append([]any{&p.ID, &p.Tenant, &p.Name, &p.Cron, &p.TimeZone, &p.Pattern, (*zeronull.UUID)(&p.Campaign), (*string)(&p.CatchUp), &p.Paused,
		(*zeronull.Timestamptz)(&p.Until), &p.Began, &p.Done, (*zeronull.Timestamptz)(&p.NextAt), &p.CreatedAt, &p.UpdatedAt}, more...)...)
	return p, err
}

// NewSchedule is a schedule to create.
type NewSchedule struct {
	push.Schedule
	RequestHash []byte // the hash of a request with an Idempotency-Key; the id is derived from that key
	Most        int    // the maximum number of schedules of the tenant
	Invalid     error  // returned unless an earlier request created the schedule; nil if it is valid
}

// CreateSchedule creates a schedule, or finds the one that an earlier request with the same Idempotency-Key created.
// start sets the initial times of the schedule, by Postgres' clock. The errors are [push.ErrTooManySchedules],
// n.Invalid, [push.ErrNoPattern], [push.ErrKeyReused] if the earlier request was a different one, and
// [push.ErrNotFound] if its schedule was deleted.
func (s *Store) CreateSchedule(ctx context.Context, n NewSchedule, start func(p push.Schedule, now time.Time) push.Schedule) (p push.Schedule, found bool, err error) {
	err = s.db.Change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var now time.Time
			err := tx.QueryRow(ctx, `SELECT clock_timestamp() FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant).Scan(&now) // the lock serialises creations
			if err != nil {
				return err
			}
			if p, found, err = findSchedule(ctx, tx, n); found || err != nil {
				found = found && earlier == 0 // an earlier run may have created it
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
			if err := campaigns.KeepPattern(ctx, tx, &n.Schedule); err != nil {
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
				p.Began, p.Done, zeronull.Timestamptz(p.NextAt), n.RequestHash, now, recipientKey(&p), zeronull.UUID(p.Campaign))
			if p, err = pgx.CollectExactlyOneRow(rows, collectSchedule); err != nil {
				return err
			}
			return auditlog.Record(ctx, tx, p.Tenant, push.ActScheduleCreate, p.ID.String(), scheduleDifference(push.Schedule{}, p))
		})
	})
	return p, found, err
}

// findSchedule returns the schedule that an earlier request created.
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
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules p WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL`, id, tenant)
		p, err = pgx.CollectExactlyOneRow(rows, collectSchedule)
		return err
	})
	return p, err
}

// Schedules returns up to limit of a tenant's schedules after an id, ordered by id. Like [pushes.Store.List], it may
// return fewer.
func (s *Store) Schedules(ctx context.Context, tenant, after uuid.UUID, limit int) (page push.SchedulePage, err error) {
	q := pg.PageQuery{
		Limit: limit, Scan: limit + 1, Item: "SELECT * FROM schedules WHERE id = s.id", Columns: scheduleColumns, Position: "p.id", Order: "p.id", Backward: "p.id DESC",
		Size: `octet_length(p.push::text) + 500`, Args: []any{tenant, after, limit + 1},
		Scanned: `SELECT p.id, true AS fits FROM schedules p WHERE p.tenant_id = $1 AND p.id > $2 AND p.deleted_at IS NULL ORDER BY p.id LIMIT $3`,
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var last uuid.UUID
		rows, _ := c.Query(ctx, q.SQL(), q.Args...)
		schedules, next, _, err := pg.CollectPage(rows, q, &last, []any{&last}, func(p push.Schedule) uuid.UUID { return p.ID }, scanSchedule)
		if page = (push.SchedulePage{Schedules: schedules}); next != nil {
			page.Next = *next
		}
		return err
	})
	return page, err
}

// ScheduleChange changes a schedule and settles occurrences, at a time by Postgres' clock. again reports that the
// change is not made yet, because more occurrences come before it.
type ScheduleChange func(p push.Schedule, now time.Time) (changed push.Schedule, runs []push.Run, again bool)

// ChangeSchedule changes a tenant's schedule under its lock. It waits for an occurrence that is being submitted. The
// errors are [push.ErrNotFound], [push.ErrNoPattern] and, if something would change, [*push.StaleError].
func (s *Store) ChangeSchedule(ctx context.Context, tenant, id uuid.UUID, unchanged push.Unchanged, change ScheduleChange) (p push.Schedule, err error) {
	for again := true; again && err == nil; unchanged = nil {
		err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
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
				d := scheduleDifference(old, p)
				if stale := unchanged.Check(old.UpdatedAt); stale != nil && (again || len(d) > 0) { // no changes: an earlier run may have made them
					return stale
				}
				if p.Campaign != old.Campaign {
					if err := campaigns.KeepPattern(ctx, tx, &p); err != nil {
						return err
					}
				}
				b := &pgx.Batch{}
				queueRuns(b, tenant, runs)
				if err := queueSchedule(b, &p, now); err != nil {
					return err
				}
				if len(d) > 0 {
					auditlog.QueueRecord(b, push.ActorOf(ctx), tenant, push.ActScheduleChange, id.String(), d)
				}
				return tx.SendBatch(ctx, b).Close()
			})
		})
	}
	return p, err
}

// scheduleDifference returns the audit log's description of a change. It does not show the name, which may name a
// recipient, nor the content and recipient of the push, only that they changed.
func scheduleDifference(old, p push.Schedule) auditlog.Difference {
	d := auditlog.Difference{}
	d.Hide("name", old.Name, p.Name)
	d.Show("cron", old.Cron, p.Cron)
	d.Show("time_zone", old.TimeZone, p.TimeZone)
	d.Hide("push", old.Pattern, p.Pattern)
	d.Show("campaign", auditlog.MaybeID(old.Campaign), auditlog.MaybeID(p.Campaign))
	d.Show("catch_up", old.CatchUp, p.CatchUp)
	d.Show("paused", old.Paused, p.Paused)
	d.Show("until", old.Until, p.Until)
	return d
}

// queueSchedule writes all columns of a schedule that can change.
func queueSchedule(b *pgx.Batch, p *push.Schedule, now time.Time) error {
	pattern, err := patternText(p.Pattern)
	if err != nil {
		return err
	}
	p.UpdatedAt = now
	b.Queue(`UPDATE schedules SET name = $2, cron = $3, time_zone = $4, push = $5, catch_up = $6, paused = $7, until = $8,
			began_at = $9, done_at = $10, next_at = $11, updated_at = $12, recipient_key = $13, campaign_id = $14 WHERE id = $1`,
		p.ID, p.Name, p.Cron, p.TimeZone, pattern, string(p.CatchUp), p.Paused, zeronull.Timestamptz(p.Until),
		p.Began, p.Done, zeronull.Timestamptz(p.NextAt), now, recipientKey(p), zeronull.UUID(p.Campaign))
	return nil
}

// recipientKey returns the recipient's key, so that an erasure can find the schedule. It is nil for the schedule of a
// campaign.
func recipientKey(p *push.Schedule) *int64 {
	if p.Campaign != uuid.Nil {
		return nil
	}
	return new(push.RecipientKey(p.Tenant, p.Pattern.Recipient))
}

// patternText writes a pattern as JSON without escaping HTML, so that strings stay as callers wrote them.
func patternText(p push.Pattern) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(p)
	return text.Bytes(), err
}

// DeletedSchedule is the assignments that delete a schedule. Its row stays until its runs are deleted.
const DeletedSchedule = `deleted_at = clock_timestamp(), next_at = NULL, name = '', push = '{}', campaign_id = NULL`

// DeleteSchedule deletes a schedule and its content. It waits for an occurrence that is being submitted; after it
// returns without an error, no occurrence is submitted. SweepSchedules deletes the rows.
func (s *Store) DeleteSchedule(ctx context.Context, tenant, id uuid.UUID) error {
	deleted := func(ctx context.Context, tx pgx.Tx, _ bool) error {
		return auditlog.Record(ctx, tx, tenant, push.ActScheduleDelete, id.String(), nil)
	}
	_, err := auditlog.RecordOnce(ctx, s.db, tenant, pgx.RowTo[bool], deleted, `
		UPDATE schedules SET `+DeletedSchedule+`
		WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL RETURNING true`, id, tenant)
	return err
}

// AllSchedules calls each with the schedules of a tenant, ordered by tenant and id; [uuid.Nil] is all tenants. It
// passes the name of the tenant.
func (s *Store) AllSchedules(ctx context.Context, tenant uuid.UUID, each func(tenant string, p push.Schedule) error) error {
	const portion = 100
	last := push.Schedule{Tenant: tenant}
	for n := portion; n == portion; {
		ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
		rows, _ := s.db.Pool.Query(ctx, `
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
			return pg.Classify(err)
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
	name string // the name of the tenant
}

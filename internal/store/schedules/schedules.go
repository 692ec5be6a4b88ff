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

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
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

func collectSchedule(row pgx.CollectableRow) (recurrence.Schedule, error) { return scanSchedule(row) }

// scanSchedule reads one row of [scheduleColumns], and the columns after them into more.
func scanSchedule(row pgx.CollectableRow, more ...any) (p recurrence.Schedule, err error) {
	err = row.Scan(append([]any{&p.ID, &p.Tenant, &p.Name, &p.Cron, &p.TimeZone, &p.Pattern, (*zeronull.UUID)(&p.Campaign), (*string)(&p.CatchUp), &p.Paused,
		(*zeronull.Timestamptz)(&p.Until), &p.Began, &p.Done, (*zeronull.Timestamptz)(&p.NextAt), &p.CreatedAt, &p.UpdatedAt}, more...)...)
	return p, err
}

// NewSchedule is a schedule to create.
type NewSchedule struct {
	recurrence.Schedule
	RequestHash []byte // the hash of a request with an Idempotency-Key; the id is derived from that key
	Most        int    // the maximum number of schedules of the tenant
	Invalid     error  // returned unless an earlier request created the schedule; nil if it is valid
}

// Clock returns the time of Postgres' clock.
func (s *Store) Clock(ctx context.Context, tenant uuid.UUID) (now time.Time, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT clock_timestamp()`)
		now, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
		return err
	})
	return now, err
}

// CreateSchedule creates a schedule, or finds the one that an earlier request with the same Idempotency-Key created. Its
// times follow from [Store.Clock]. The errors are [recurrence.ErrTooMany],
// n.Invalid, [recurrence.ErrNoPattern], [push.ErrKeyReused] if the earlier request was a different one, and
// [push.ErrNotFound] if its schedule was deleted.
func (s *Store) CreateSchedule(ctx context.Context, n NewSchedule) (p recurrence.Schedule, found bool, err error) {
	err = s.db.Change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant); err != nil { // the lock serialises creations
				return err
			}
			var err error
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
				return recurrence.ErrTooMany
			}
			if err := campaigns.KeepPattern(ctx, tx, &n.Schedule); err != nil {
				return err
			}
			p = n.Schedule
			pattern, err := patternText(p.Pattern)
			if err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, `
				INSERT INTO schedules AS p (id, tenant_id, name, cron, time_zone, push, catch_up, paused, until, began_at, done_at, next_at, request_hash, created_at, updated_at, recipient_key, campaign_id)
				SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now, now, $14, $15 FROM clock_timestamp() AS now RETURNING `+scheduleColumns,
				p.ID, p.Tenant, p.Name, p.Cron, p.TimeZone, pattern, string(p.CatchUp), p.Paused, zeronull.Timestamptz(p.Until),
				p.Began, p.Done, zeronull.Timestamptz(p.NextAt), n.RequestHash, recipientKey(&p), zeronull.UUID(p.Campaign))
			if p, err = pgx.CollectExactlyOneRow(rows, collectSchedule); err != nil {
				return err
			}
			return auditlogs.Record(ctx, tx, p.Tenant, auditlog.ScheduleCreate, p.ID.String(), scheduleDifference(recurrence.Schedule{}, p))
		})
	})
	return p, found, err
}

// findSchedule returns the schedule that an earlier request created.
func findSchedule(ctx context.Context, tx pgx.Tx, n NewSchedule) (p recurrence.Schedule, found bool, err error) {
	var (
		hash    []byte
		deleted bool
	)
	rows, _ := tx.Query(ctx, `SELECT `+scheduleColumns+`, p.request_hash, p.deleted_at IS NOT NULL FROM schedules p WHERE id = $1`, n.ID)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (recurrence.Schedule, error) { return scanSchedule(row, &hash, &deleted) })
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
func (s *Store) Schedule(ctx context.Context, tenant, id uuid.UUID) (p recurrence.Schedule, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules p WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL`, id, tenant)
		p, err = pgx.CollectExactlyOneRow(rows, collectSchedule)
		return err
	})
	return p, err
}

// Schedules returns up to limit of a tenant's schedules after an id, ordered by id. Like [pushes.Store.List], it may
// return fewer.
func (s *Store) Schedules(ctx context.Context, tenant, after uuid.UUID, limit int) (page recurrence.Page, err error) {
	q := pg.PageQuery{
		Limit: limit, Scan: limit + 1, Item: "SELECT * FROM schedules WHERE id = s.id", Columns: scheduleColumns, Position: "p.id", Order: "p.id", Backward: "p.id DESC",
		Size: `octet_length(p.push::text) + 500`, Args: []any{tenant, after, limit + 1},
		Scanned: `SELECT p.id, true AS fits FROM schedules p WHERE p.tenant_id = $1 AND p.id > $2 AND p.deleted_at IS NULL ORDER BY p.id LIMIT $3`,
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var last uuid.UUID
		rows, _ := c.Query(ctx, q.SQL(), q.Args...)
		schedules, next, _, err := pg.CollectPage(rows, q, &last, []any{&last}, func(p recurrence.Schedule) uuid.UUID { return p.ID }, scanSchedule)
		if page = (recurrence.Page{Schedules: schedules}); next != nil {
			page.Next = *next
		}
		return err
	})
	return page, err
}

// recipientKey returns the recipient's key, so that an erasure can find the schedule. It is nil for the schedule of a
// campaign.
func recipientKey(p *recurrence.Schedule) *int64 {
	if p.Campaign != uuid.Nil {
		return nil
	}
	return new(push.RecipientKey(p.Tenant, p.Pattern.Recipient))
}

// patternText writes a pattern as JSON without escaping HTML, so that strings stay as callers wrote them.
func patternText(p recurrence.Pattern) ([]byte, error) {
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
		return auditlogs.Record(ctx, tx, tenant, auditlog.ScheduleDelete, id.String(), nil)
	}
	_, err := auditlogs.RecordOnce(ctx, s.db, tenant, pgx.RowTo[bool], deleted, `
		UPDATE schedules SET `+DeletedSchedule+`
		WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL RETURNING true`, id, tenant)
	return err
}

// AllSchedules calls each with the schedules of a tenant, ordered by tenant and id; [uuid.Nil] is all tenants. It
// passes the name of the tenant.
func (s *Store) AllSchedules(ctx context.Context, tenant uuid.UUID, each func(tenant string, p recurrence.Schedule) error) error {
	const portion = 100
	last := recurrence.Schedule{Tenant: tenant}
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
	recurrence.Schedule
	name string // the name of the tenant
}

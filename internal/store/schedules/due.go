package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/recurrence"
)

// Due occurrences are picked round-robin by tenant, in the order of tenant ids. Each pass starts after the last tenant
// of the previous pass.

// tenantsPerPass is the maximum number of tenants in one pass.
const tenantsPerPass = 64

// roundRobinSQL picks up to $2 due rows of a table, of tenants after $1: the first row of each tenant, then the
// second of each, and so on. It steps from tenant to tenant along the index, and reads few rows of each.
const roundRobinSQL = `
	WITH RECURSIVE t AS (
		(SELECT tenant_id, %[2]s AS first FROM %[1]s WHERE %[3]s AND tenant_id > $1 ORDER BY tenant_id, %[2]s LIMIT 1)
		UNION ALL
		SELECT n.tenant_id, n.first FROM t CROSS JOIN LATERAL (
			SELECT tenant_id, %[2]s AS first FROM %[1]s WHERE %[3]s AND tenant_id > t.tenant_id ORDER BY tenant_id, %[2]s LIMIT 1
		) n
	), turns AS (
		SELECT tenant_id FROM t WHERE first <= statement_timestamp() LIMIT %[5]d
	)
	SELECT o.tenant_id, %[4]s FROM turns CROSS JOIN LATERAL (
		SELECT tenant_id, %[4]s, row_number() OVER (ORDER BY %[2]s) AS n FROM (
			SELECT * FROM %[1]s WHERE %[3]s AND tenant_id = turns.tenant_id AND %[2]s <= statement_timestamp() ORDER BY %[2]s LIMIT $2
		) o
	) o
	ORDER BY n, tenant_id LIMIT $2`

var (
	dueSQL   = fmt.Sprintf(roundRobinSQL, "schedules", "next_at", "next_at IS NOT NULL", "id, next_at", tenantsPerPass)
	begunSQL = fmt.Sprintf(roundRobinSQL, "schedule_runs", "at", "outcome IS NULL", "schedule_id, at", tenantsPerPass)
)

// pickedRow is a row of [roundRobinSQL].
type pickedRow struct {
	Tenant, Schedule uuid.UUID
	At               time.Time
}

// pickRoundRobin picks rows of tenants after a tenant. It also returns the tenant after which the next pass starts;
// [uuid.Nil] means from the beginning.
func pickRoundRobin(ctx context.Context, c *pgxpool.Conn, sql string, after uuid.UUID, limit int) (picked []pickedRow, last uuid.UUID, err error) {
	rows, _ := c.Query(ctx, sql, after, limit)
	picked, err = pgx.CollectRows(rows, pgx.RowToStructByPos[pickedRow])
	tenants := map[uuid.UUID]bool{}
	for _, r := range picked {
		tenants[r.Tenant] = true
		if string(r.Tenant[:]) > string(last[:]) {
			last = r.Tenant
		}
	}
	if len(tenants) < tenantsPerPass && len(picked) < limit {
		last = uuid.Nil
	}
	return picked, last, err
}

// Turn is a worker's position in the rounds through the tenants. The zero value starts at the first tenant.
type Turn struct{ due, begun uuid.UUID }

// Due are schedules that have a due occurrence, at a time by Postgres' clock.
type Due struct {
	Schedules []recurrence.Schedule
	Now       time.Time
	More      bool          // call DueSchedules again at once
	Next      time.Duration // the time until a schedule is due, at most an hour; not positive if one is due
}

// DueSchedules returns at most limit schedules that have a due occurrence. It locks none of them.
func (s *Store) DueSchedules(ctx context.Context, turn *Turn, limit int) (due Due, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		due = Due{Next: time.Hour}
		err := c.QueryRow(ctx, `SELECT next_at - clock_timestamp() FROM schedules WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1`).Scan(&due.Next)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || due.Next > 0 {
			return err
		}
		picked, last, err := pickRoundRobin(ctx, c, dueSQL, turn.due, limit)
		if err != nil {
			return err
		}
		if turn.due, due.More = last, turn.due != uuid.Nil; len(picked) == 0 {
			return nil // no tenant is left; the next pass starts with the first one
		}
		ids := make([]uuid.UUID, len(picked))
		for i, r := range picked {
			ids[i] = r.Schedule
		}
		rows, _ := c.Query(ctx, `SELECT `+scheduleColumns+`, clock_timestamp() FROM schedules p
			WHERE id = ANY ($1::uuid[]) AND next_at <= clock_timestamp() ORDER BY id`, ids)
		due.Schedules, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (recurrence.Schedule, error) { return scanSchedule(row, &due.Now) })
		return err
	})
	return due, err
}

// Settled is the decision about the occurrences of a due schedule.
type Settled struct {
	Before, After recurrence.Schedule
	Runs          []recurrence.Run // to record
}

// SettleSchedules records the runs and the new times of due schedules, and returns their number. It leaves out schedules
// that another worker has locked, and schedules that have changed since they were read.
func (s *Store) SettleSchedules(ctx context.Context, all []Settled) (n int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			locked, err := lockUnchanged(ctx, tx, all)
			if n = len(locked); err != nil || n == 0 {
				return err
			}
			failpoint.Hit(failpoint.OccurrenceLocked)
			var (
				b             = &pgx.Batch{}
				ids           []uuid.UUID
				done, nexts   []time.Time
				infinitelyFar = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			)
			for _, one := range all {
				if p := one.After; slices.Contains(locked, p.ID) {
					queueRuns(b, p.Tenant, one.Runs)
					if p.NextAt.IsZero() {
						p.NextAt = infinitelyFar
					}
					ids, done, nexts = append(ids, p.ID), append(done, p.Done), append(nexts, p.NextAt)
				}
			}
			b.Queue(`
				UPDATE schedules s SET done_at = n.done_at, next_at = nullif(n.next_at, $4)
				FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) AS n (id, done_at, next_at) WHERE s.id = n.id`,
				ids, done, nexts, infinitelyFar)
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			failpoint.Hit(failpoint.OccurrenceWritten)
			return nil
		})
	})
	return n, err
}

// lockUnchanged locks the schedules that no other worker has locked and that are as they were read, and returns their ids.
func lockUnchanged(ctx context.Context, tx pgx.Tx, all []Settled) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, len(all))
	updated, done, nexts := make([]time.Time, len(all)), make([]time.Time, len(all)), make([]time.Time, len(all))
	for i := range all {
		p := &all[i].Before
		ids[i], updated[i], done[i], nexts[i] = p.ID, p.UpdatedAt, p.Done, p.NextAt
	}
	rows, _ := tx.Query(ctx, `
		SELECT p.id FROM schedules p JOIN unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[]) AS n (id, updated_at, done_at, next_at)
			ON n.id = p.id AND n.updated_at = p.updated_at AND n.done_at = p.done_at AND n.next_at = p.next_at
		WHERE p.deleted_at IS NULL ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED`, ids, updated, done, nexts)
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
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

// ScheduleTurn is a worker's position in the rounds through the tenants. The zero value starts at the first tenant.
type ScheduleTurn struct{ due, begun uuid.UUID }

// DueSchedules settles at most limit schedules that have a due occurrence. settle decides about their occurrences up
// to now, by Postgres' clock. more reports whether to call DueSchedules again at once. If nothing is due, next is the
// time until something is, at most an hour.
func (s *Store) DueSchedules(ctx context.Context, turn *ScheduleTurn, limit int, settle Settle) (more bool, next time.Duration, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		more, next = false, time.Hour
		err := c.QueryRow(ctx, `SELECT next_at - clock_timestamp() FROM schedules WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1`).Scan(&next)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || next > 0 {
			return err
		}
		picked, last, err := pickRoundRobin(ctx, c, dueSQL, turn.due, limit)
		if err != nil {
			return err
		}
		if turn.due, more = last, turn.due != uuid.Nil; len(picked) == 0 {
			return nil // no tenant is left; the next pass starts with the first one
		}
		settled, err := settleDue(ctx, c, picked, settle)
		more = more || settled > 0
		return err
	})
	return more, next, err
}

// Settle decides about the occurrences of a schedule up to now. It returns the schedule with its new times, and the
// runs to record.
type Settle func(p push.Schedule, now time.Time) (push.Schedule, []push.Run)

// runsPerTx is roughly the number of runs that one transaction records.
const runsPerTx = 5000

// settleDue settles the picked schedules that no other worker has locked, and records their runs. n is the number of
// schedules that it settled.
func settleDue(ctx context.Context, c *pgxpool.Conn, picked []pickedRow, settle Settle) (n int, err error) {
	ids := make([]uuid.UUID, len(picked))
	for i, r := range picked {
		ids[i] = r.Schedule
	}
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		var now time.Time
		rows, _ := tx.Query(ctx, `SELECT `+scheduleColumns+`, clock_timestamp() FROM schedules p
			WHERE id = ANY ($1::uuid[]) AND next_at <= clock_timestamp() ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`, ids)
		due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (push.Schedule, error) { return scanSchedule(row, &now) })
		if n = len(due); err != nil || n == 0 {
			return err
		}
		var (
			b             = &pgx.Batch{}
			settled       []uuid.UUID
			done, nexts   []time.Time
			infinitelyFar = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		)
		put := 0
		for i, p := range due {
			if put >= runsPerTx { // the other schedules stay due
				n = i
				break
			}
			p, runs := settle(p, now)
			put += len(runs)
			queueRuns(b, p.Tenant, runs)
			if p.NextAt.IsZero() {
				p.NextAt = infinitelyFar
			}
			settled, done, nexts = append(settled, p.ID), append(done, p.Done), append(nexts, p.NextAt)
		}
		failpoint.Hit(failpoint.OccurrenceLocked)
		b.Queue(`
			UPDATE schedules s SET done_at = n.done_at, next_at = nullif(n.next_at, $4)
			FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) AS n (id, done_at, next_at) WHERE s.id = n.id`,
			settled, done, nexts, infinitelyFar)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		failpoint.Hit(failpoint.OccurrenceWritten)
		return nil
	})
	return n, err
}

// BegunOccurrences submits at most limit begun occurrences and records the runs that submit returns. A run without an
// outcome stays begun. Meanwhile the occurrences are locked and their schedules cannot change: no other worker
// submits them, but if this one dies, another submits them at once. more reports whether to call BegunOccurrences
// again at once.
//
// submit gets four fifths of the time of a transaction. It must be idempotent, because a worker can die or lose its
// connection before the outcome is recorded.
func (s *Store) BegunOccurrences(ctx context.Context, turn *ScheduleTurn, limit int, submit func(ctx context.Context, all []push.Occurrence) []push.Run) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	submitting, stop := context.WithTimeout(ctx, s.db.Cfg.Timeout*4/5)
	defer stop()
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		picked, last, err := pickRoundRobin(ctx, c, begunSQL, turn.begun, limit)
		if err != nil {
			return err
		}
		if turn.begun, more = last, turn.begun != uuid.Nil; len(picked) == 0 {
			return nil // no tenant is left; the next pass starts with the first one
		}
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			all, err := lockOccurrences(ctx, tx, picked)
			if err != nil || len(all) == 0 {
				return err
			}
			b := &pgx.Batch{}
			queueOutcomes(b, submit(submitting, all))
			more = more || b.Len() > 0
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			failpoint.Hit(failpoint.OccurrenceRecorded)
			return nil
		})
	})
	return more, pg.Classify(err)
}

// lockOccurrences locks and reads the picked occurrences that no other worker has locked. It waits for changes of
// their schedules.
func lockOccurrences(ctx context.Context, tx pgx.Tx, picked []pickedRow) ([]push.Occurrence, error) {
	ids, times := make([]uuid.UUID, len(picked)), make([]time.Time, len(picked))
	for i, r := range picked {
		ids[i], times[i] = r.Schedule, r.At
	}
	rows, _ := tx.Query(ctx, `
		SELECT `+scheduleColumns+`, r.at, clock_timestamp() - r.at, clock_timestamp() - r.begun_at, t.pending_cap, t.recipients_cap, t.audience_cap
		FROM unnest($1::uuid[], $2::timestamptz[]) AS n (schedule_id, at)
		JOIN schedule_runs r ON r.schedule_id = n.schedule_id AND r.at = n.at
		JOIN schedules p ON p.id = r.schedule_id
		JOIN tenants t ON t.id = p.tenant_id
		WHERE r.outcome IS NULL AND p.deleted_at IS NULL
		FOR UPDATE OF r SKIP LOCKED FOR SHARE OF p`, ids, times)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o push.Occurrence, err error) {
		o.Schedule, err = scanSchedule(row, &o.At, &o.Late, &o.Begun, &o.Caps.PendingPushes, &o.Caps.RecipientsPerDay, &o.Caps.AudienceBytes)
		return o, err
	})
}

// queueOutcomes records the outcomes of begun occurrences.
func queueOutcomes(b *pgx.Batch, runs []push.Run) {
	for _, r := range runs {
		if r.Outcome != "" {
			b.Queue(`UPDATE schedule_runs SET outcome = $3, push_id = $4, reason = $5, rules = $6, detail = $7, campaign_id = $8 WHERE schedule_id = $1 AND at = $2`,
				r.Schedule, r.At, string(r.Outcome), zeronull.UUID(r.Push), r.Reason, append([]string{}, r.Rules...), r.Detail, zeronull.UUID(r.Campaign))
		}
	}
}

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

// Tenants take turns at their occurrences, in the order of their ids: each pass begins behind the tenant that the one
// before ended with, and takes as many of each.

// mostTurns is how many tenants have a turn in one pass.
const mostTurns = 64

// turnsSQL picks up to $2 rows of a table, of tenants behind $1: first the first of each tenant, then the second. It goes
// from tenant to tenant by the index, and reads few rows of each.
const turnsSQL = `
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
	dueTurnsSQL   = fmt.Sprintf(turnsSQL, "schedules", "next_at", "next_at IS NOT NULL", "id, next_at", mostTurns)
	begunTurnsSQL = fmt.Sprintf(turnsSQL, "schedule_runs", "at", "outcome IS NULL", "schedule_id, at", mostTurns)
)

// turnRow is a row of [turnsSQL].
type turnRow struct {
	Tenant, Schedule uuid.UUID
	At               time.Time
}

// pickTurns picks rows behind a tenant, and returns the tenant behind which to go on: Nil at the end.
func pickTurns(ctx context.Context, c *pgxpool.Conn, sql string, after uuid.UUID, limit int) (picked []turnRow, last uuid.UUID, err error) {
	rows, _ := c.Query(ctx, sql, after, limit)
	picked, err = pgx.CollectRows(rows, pgx.RowToStructByPos[turnRow])
	tenants := map[uuid.UUID]bool{}
	for _, r := range picked {
		tenants[r.Tenant] = true
		if string(r.Tenant[:]) > string(last[:]) {
			last = r.Tenant
		}
	}
	if len(tenants) < mostTurns && len(picked) < limit {
		last = uuid.Nil
	}
	return picked, last, err
}

// ScheduleTurn is where a worker is in the tenants' turns. The zero value is the beginning.
type ScheduleTurn struct{ due, begun uuid.UUID }

// DueSchedules has schedules settled of which an occurrence is due: settle says what becomes of their occurrences up to
// now, which is by Postgres' clock. It settles at most limit schedules, and says whether to come again at once; and if
// nothing is due, in how long something will be.
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
		picked, last, err := pickTurns(ctx, c, dueTurnsSQL, turn.due, limit)
		if err != nil {
			return err
		}
		if turn.due, more = last, turn.due != uuid.Nil; len(picked) == 0 {
			return nil // those before are to be looked at, if it has not begun with them
		}
		settled, err := settleDue(ctx, c, picked, settle)
		more = more || settled > 0
		return err
	})
	return more, next, err
}

// Settle says what becomes of the occurrences of a schedule up to now.
type Settle func(p push.Schedule, now time.Time) (push.Schedule, []push.Run)

// mostPut is about how many occurrences a transaction puts on record.
const mostPut = 5000

// settleDue puts on record what becomes of the occurrences of some schedules, but for those that others have locked.
func settleDue(ctx context.Context, c *pgxpool.Conn, picked []turnRow, settle Settle) (n int, err error) {
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
			if put >= mostPut { // the others are due still
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

// BegunOccurrences has occurrences submitted that were begun, and records what submit says of them: those without an
// outcome stay begun. Meanwhile they are locked, and their schedules cannot be changed: no other worker submits them, and
// if this one dies, others do at once. It submits at most limit of them, and says whether to come again at once.
//
// submit has four fifths of the time of a transaction. It must submit an occurrence twice as if once: a worker can die, or
// be cut off, after it.
func (s *Store) BegunOccurrences(ctx context.Context, turn *ScheduleTurn, limit int, submit func(ctx context.Context, all []push.Occurrence) []push.Run) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	submitting, stop := context.WithTimeout(ctx, s.db.Cfg.Timeout*4/5)
	defer stop()
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		picked, last, err := pickTurns(ctx, c, begunTurnsSQL, turn.begun, limit)
		if err != nil {
			return err
		}
		if turn.begun, more = last, turn.begun != uuid.Nil; len(picked) == 0 {
			return nil // those before are to be looked at, if it has not begun with them
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

// lockOccurrences locks those that no other worker has. Changes of their schedules are waited for.
func lockOccurrences(ctx context.Context, tx pgx.Tx, picked []turnRow) ([]push.Occurrence, error) {
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

// queueOutcomes records what became of occurrences that were begun.
func queueOutcomes(b *pgx.Batch, runs []push.Run) {
	for _, r := range runs {
		if r.Outcome != "" {
			b.Queue(`UPDATE schedule_runs SET outcome = $3, push_id = $4, reason = $5, rules = $6, detail = $7, campaign_id = $8 WHERE schedule_id = $1 AND at = $2`,
				r.Schedule, r.At, string(r.Outcome), zeronull.UUID(r.Push), r.Reason, append([]string{}, r.Rules...), r.Detail, zeronull.UUID(r.Campaign))
		}
	}
}

package schedules

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
)

// queueRuns records occurrences. An occurrence that is already recorded stays unchanged.
func queueRuns(b *pgx.Batch, tenant uuid.UUID, runs []recurrence.Run) {
	if len(runs) == 0 {
		return
	}
	schedules, times := make([]uuid.UUID, len(runs)), make([]time.Time, len(runs))
	outcomes, reasons := make([]zeronull.Text, len(runs)), make([]string, len(runs))
	for i, r := range runs {
		schedules[i], times[i], outcomes[i], reasons[i] = r.Schedule, r.At, zeronull.Text(r.Outcome), r.Reason
	}
	b.Queue(`
		INSERT INTO schedule_runs (schedule_id, at, tenant_id, outcome, reason)
		SELECT r.schedule_id, r.at, $1, r.outcome, r.reason
		FROM unnest($2::uuid[], $3::timestamptz[], $4::text[], $5::text[]) AS r (schedule_id, at, outcome, reason)
		ON CONFLICT DO NOTHING`, tenant, schedules, times, outcomes, reasons)
}

// Runs returns up to limit ended runs of a tenant's schedule before a time, the latest first; the zero time starts
// from the latest. It leaves out occurrences that are still being submitted. If there is no such schedule, Runs
// returns [push.ErrNotFound].
func (s *Store) Runs(ctx context.Context, tenant, schedule uuid.UUID, before time.Time, limit int) (page recurrence.RunPage, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var (
			exists bool
			runs   []recurrence.Run
		)
		b := &pgx.Batch{}
		b.Queue(`SELECT EXISTS (SELECT FROM schedules WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL)`, schedule, tenant).
			QueryRow(func(row pgx.Row) error { return row.Scan(&exists) })
		b.Queue(`
			SELECT schedule_id, at, outcome, coalesce(push_id, `+pg.NoID+`), coalesce(campaign_id, `+pg.NoID+`), reason, rules, detail FROM schedule_runs
			WHERE schedule_id = $1 AND tenant_id = $2 AND outcome IS NOT NULL AND at < coalesce($3::timestamptz, 'infinity') ORDER BY at DESC LIMIT $4`,
			schedule, tenant, zeronull.Timestamptz(before), limit+1).
			Query(func(rows pgx.Rows) (err error) {
				runs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[recurrence.Run])
				return err
			})
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if !exists {
			return push.ErrNotFound
		}
		page = recurrence.RunPage{Runs: runs}
		if len(runs) > limit {
			page.Runs, page.Next = runs[:limit], runs[limit-1].At
		}
		return nil
	})
	return page, err
}

// SweepSchedules deletes up to limit runs: the ended runs whose occurrence is older than keep, unless keep is zero,
// and all runs of deleted schedules. If it deletes fewer than limit, it also deletes the rows of deleted schedules
// that have no runs and whose Idempotency-Key is no longer kept. It returns the number of deleted runs.
func (s *Store) SweepSchedules(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	tag, err := s.db.Pool.Exec(ctx, `
		WITH old AS (
			SELECT schedule_id, at FROM schedule_runs
			WHERE $1::interval > '0' AND at < statement_timestamp() - $1::interval AND outcome IS NOT NULL ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
		), ownerless AS (
			SELECT r.schedule_id, r.at FROM schedules s JOIN schedule_runs r ON r.schedule_id = s.id
			WHERE s.deleted_at IS NOT NULL LIMIT $2 FOR UPDATE OF r SKIP LOCKED
		)
		DELETE FROM schedule_runs r USING (TABLE old UNION TABLE ownerless) o WHERE r.schedule_id = o.schedule_id AND r.at = o.at`, keep, limit)
	if n = int(tag.RowsAffected()); err != nil || n >= limit {
		return n, pg.Classify(err)
	}
	_, err = s.db.Pool.Exec(ctx, `
		DELETE FROM schedules s WHERE s.deleted_at IS NOT NULL AND (s.request_hash IS NULL OR s.deleted_at < statement_timestamp() - $1::interval)
			AND NOT EXISTS (SELECT FROM schedule_runs r WHERE r.schedule_id = s.id)`, pushes.KeyLifetime)
	return n, pg.Classify(err)
}

package schedules

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

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

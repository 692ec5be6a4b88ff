package schedules

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Begun are begun occurrences that a worker has locked. Until it releases them, their schedules cannot change and no other
// worker submits them. If the worker dies, another submits them at once.
type Begun struct {
	Occurrences []recurrence.Occurrence
	Deadline    time.Time // of the submits, at four fifths of the time of a transaction
	More        bool      // call LockOccurrences again at once

	session *pg.Session
	end     time.Time // of the transaction
}

// LockOccurrences locks at most limit begun occurrences. The caller submits them, records the outcomes, and releases them.
// The submits must be idempotent, because a worker can die or lose its connection before the outcomes are recorded.
func (s *Store) LockOccurrences(ctx context.Context, turn *Turn, limit int) (*Begun, error) {
	now := time.Now()
	b := &Begun{Deadline: now.Add(s.db.Cfg.Timeout * 4 / 5), end: now.Add(s.db.Cfg.Timeout)}
	ctx, cancel := context.WithDeadline(ctx, b.end)
	defer cancel()
	var err error
	if b.session, err = s.db.Session(ctx); err != nil {
		return nil, pg.Classify(err)
	}
	if err := b.lock(ctx, turn, limit); err != nil {
		b.Release(ctx, err)
		return nil, pg.Classify(err)
	}
	return b, nil
}

// lock picks occurrences, and locks them in a transaction that stays open.
func (b *Begun) lock(ctx context.Context, turn *Turn, limit int) error {
	picked, last, err := pickRoundRobin(ctx, b.session.Conn, begunSQL, turn.begun, limit)
	if err != nil {
		return err
	}
	if turn.begun, b.More = last, turn.begun != uuid.Nil; len(picked) == 0 {
		return nil // no tenant is left; the next pass starts with the first one
	}
	if _, err := b.session.Exec(ctx, `begin`); err != nil {
		return err
	}
	b.Occurrences, err = lockOccurrences(ctx, b.session, picked)
	return err
}

// RecordOccurrences records the outcomes of locked occurrences, and commits. An occurrence without an outcome stays begun.
// recorded reports whether there was an outcome.
func (s *Store) RecordOccurrences(ctx context.Context, b *Begun, runs []recurrence.Run) (recorded bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, b.end)
	defer cancel()
	batch := &pgx.Batch{}
	queueOutcomes(batch, runs)
	recorded = batch.Len() > 0
	if err := b.session.SendBatch(ctx, batch).Close(); err != nil {
		return false, pg.Classify(err)
	}
	failpoint.Hit(failpoint.OccurrenceRecorded)
	_, err = b.session.Exec(ctx, `commit`)
	return recorded, pg.Classify(err)
}

// Release unlocks the occurrences. err is the error of the caller; nil: they are recorded, or there are none.
func (b *Begun) Release(ctx context.Context, err error) {
	b.session.End(ctx, err)
}

// lockOccurrences locks and reads the picked occurrences that no other worker has locked. It waits for changes of
// their schedules.
func lockOccurrences(ctx context.Context, tx pg.Querier, picked []pickedRow) ([]recurrence.Occurrence, error) {
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
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o recurrence.Occurrence, err error) {
		o.Schedule, err = scanSchedule(row, &o.At, &o.Late, &o.Begun, &o.Caps.PendingPushes, &o.Caps.RecipientsPerDay, &o.Caps.AudienceBytes)
		return o, err
	})
}

// queueOutcomes records the outcomes of begun occurrences.
func queueOutcomes(b *pgx.Batch, runs []recurrence.Run) {
	for _, r := range runs {
		if r.Outcome != "" {
			b.Queue(`UPDATE schedule_runs SET outcome = $3, push_id = $4, reason = $5, rules = $6, detail = $7, campaign_id = $8 WHERE schedule_id = $1 AND at = $2`,
				r.Schedule, r.At, string(r.Outcome), zeronull.UUID(r.Push), r.Reason, append([]string{}, r.Rules...), r.Detail, zeronull.UUID(r.Campaign))
		}
	}
}

package schedules

import (
	"context"
	"errors"
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

// CurrentSchedule returns a tenant's schedule and the time of Postgres' clock, or [push.ErrNotFound].
func (s *Store) CurrentSchedule(ctx context.Context, tenant, id uuid.UUID) (p recurrence.Schedule, now time.Time, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+scheduleColumns+`, clock_timestamp() FROM schedules p WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL`, id, tenant)
		p, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (recurrence.Schedule, error) { return scanSchedule(row, &now) })
		return err
	})
	return p, now, err
}

// Change is a change of a schedule that [Store.CurrentSchedule] returned.
type Change struct {
	Before, After recurrence.Schedule
	At            time.Time        // the time of Postgres' clock at which it was decided
	Runs          []recurrence.Run // the occurrences up to then
	Partial       bool             // more occurrences come before the change itself
	Unchanged     push.Unchanged
}

// ErrOutdated reports that a schedule has changed since it was read.
var ErrOutdated = errors.New("the schedule has changed since it was read")

// ChangeSchedule writes a change under the schedule's lock. It waits for an occurrence that is being submitted. The
// errors are [ErrOutdated], [push.ErrNotFound], [recurrence.ErrNoPattern] and, if something would change, [*push.StaleError].
func (s *Store) ChangeSchedule(ctx context.Context, n Change) (p recurrence.Schedule, err error) {
	tenant, id := n.Before.Tenant, n.Before.ID
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules p WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`, id, tenant)
			if p, err = pgx.CollectExactlyOneRow(rows, collectSchedule); err != nil {
				return err
			}
			if earlier > 0 && p.UpdatedAt.Equal(n.At) {
				return nil // an earlier run has made the change
			}
			if !same(&p, &n.Before) {
				return ErrOutdated
			}
			d := scheduleDifference(n.Before, n.After)
			if stale := n.Unchanged.Check(p.UpdatedAt); stale != nil && (n.Partial || len(d) > 0) {
				return stale
			}
			p = n.After
			if p.Campaign != n.Before.Campaign {
				if err := campaigns.KeepPattern(ctx, tx, &p); err != nil {
					return err
				}
			}
			b := &pgx.Batch{}
			queueRuns(b, tenant, n.Runs)
			if err := queueSchedule(b, &p, n.At); err != nil {
				return err
			}
			if len(d) > 0 {
				auditlogs.QueueRecord(b, push.ActorOf(ctx), tenant, auditlog.ScheduleChange, id.String(), d)
			}
			return tx.SendBatch(ctx, b).Close()
		})
	})
	return p, err
}

// same reports whether a schedule was not written between two reads.
func same(a, b *recurrence.Schedule) bool {
	return a.UpdatedAt.Equal(b.UpdatedAt) && a.Done.Equal(b.Done) && a.NextAt.Equal(b.NextAt)
}

// scheduleDifference returns the audit log's description of a change. It does not show the name, which may name a
// recipient, nor the content and recipient of the push, only that they changed.
func scheduleDifference(old, p recurrence.Schedule) auditlogs.Difference {
	d := auditlogs.Difference{}
	d.Hide("name", old.Name, p.Name)
	d.Show("cron", old.Cron, p.Cron)
	d.Show("time_zone", old.TimeZone, p.TimeZone)
	d.Hide("push", old.Pattern, p.Pattern)
	d.Show("campaign", auditlogs.MaybeID(old.Campaign), auditlogs.MaybeID(p.Campaign))
	d.Show("catch_up", old.CatchUp, p.CatchUp)
	d.Show("paused", old.Paused, p.Paused)
	d.Show("until", old.Until, p.Until)
	return d
}

// queueSchedule writes all columns of a schedule that can change.
func queueSchedule(b *pgx.Batch, p *recurrence.Schedule, now time.Time) error {
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

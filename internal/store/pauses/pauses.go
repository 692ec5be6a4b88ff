// Package pauses keeps pauses, and continues with the pushes that they have parked.
package pauses

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/webhook"
)

// Store keeps pauses.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store { return &Store{db} }

// pauseColumns are the columns of [pause.Pause].
const pauseColumns = `id, coalesce(tenant_id, ` + pg.NoID + `), scope, name, reason, coalesce(until, ` + pg.NoTime + `), created_at`

// inForce is the condition of a pause that stops sending now.
const inForce = `ended_at IS NULL AND (until IS NULL OR until > statement_timestamp())`

var scanPause = pgx.RowToStructByPos[pause.Pause]

// lock serialises the changes of a tenant's pauses, or of the operator's, and gives them another version: from the commit on,
// every transaction that books or claims reads them again.
func lock(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	if tenant == uuid.Nil {
		_, err := tx.Exec(ctx, `UPDATE installation SET pauses_version = pauses_version + 1`)
		return err
	}
	rows, _ := tx.Query(ctx, `UPDATE tenants SET pauses_version = pauses_version + 1 WHERE id = $1 AND deleting_at IS NULL RETURNING id`, tenant)
	_, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[uuid.UUID])
	return err
}

// CreatePause stops sending in a scope. From the commit on, no attempt begins there. If a pause of the same tenant, scope and
// name is in force, that pause is returned, and changed as [pause.Pause.Repeated] decides. The errors are
// [pause.ErrTooMany], [pause.ErrNoCampaign] and [pause.ErrPast].
func (s *Store) CreatePause(ctx context.Context, p pause.Pause, given pause.Given) (made pause.Pause, found bool, err error) {
	err = s.db.Change(ctx, p.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if err := lock(ctx, tx, p.Tenant); err != nil {
				return err
			}
			if err := check(ctx, tx, &p); err != nil {
				return err
			}
			if _, err := endOver(ctx, tx, p.Tenant); err != nil {
				return err
			}
			all, err := inForceOf(ctx, tx, p.Tenant)
			if err != nil {
				return err
			}
			for _, old := range all {
				if old.Same(&p) {
					found = earlier == 0 || old.ID != p.ID // an earlier run may have created it
					made, err = repeat(ctx, tx, &old, &p, given)
					return err
				}
			}
			if p.Scope != pause.All && len(slices.DeleteFunc(all, func(old pause.Pause) bool { return old.Scope == pause.All })) >= pause.MaxPerTenant {
				return pause.ErrTooMany
			}
			rows, _ := tx.Query(ctx, `
				INSERT INTO pauses (id, tenant_id, scope, name, reason, until) VALUES ($1, $2, $3, $4, $5, $6) RETURNING `+pauseColumns,
				p.ID, zeronull.UUID(p.Tenant), string(p.Scope), p.Name, p.Reason, zeronull.Timestamptz(p.Until))
			if made, err = pgx.CollectExactlyOneRow(rows, scanPause); err != nil {
				return err
			}
			b := &pgx.Batch{}
			queueEvent(b, &made, webhook.EventSendingPaused, "")
			queueRecord(b, push.ActorOf(ctx), &made, auditlog.PauseCreate, differenceOf(nil, &made))
			if err := tx.SendBatch(ctx, b).Close(); err != nil {
				return err
			}
			failpoint.Hit(failpoint.PauseCreated)
			return nil
		})
	})
	return made, found, err
}

// check rejects a pause of a campaign that the tenant does not have, and one that is over already.
func check(ctx context.Context, tx pgx.Tx, p *pause.Pause) error {
	var future, known bool
	err := tx.QueryRow(ctx, `
		SELECT coalesce($1 > statement_timestamp(), true), $2 <> 'campaign' OR EXISTS (SELECT FROM campaigns WHERE id::text = $3 AND tenant_id = $4)`,
		zeronull.Timestamptz(p.Until), string(p.Scope), p.Name, p.Tenant).Scan(&future, &known)
	switch {
	case err != nil:
		return err
	case !known:
		return pause.ErrNoCampaign
	case !future:
		return pause.ErrPast
	}
	return nil
}

// repeat changes a pause that is in force as another request for the same asks for. A change has an entry in the audit log and an event.
func repeat(ctx context.Context, tx pgx.Tx, old, by *pause.Pause, given pause.Given) (pause.Pause, error) {
	after, changed := old.Repeated(by, given)
	if !changed {
		return after, nil
	}
	b := &pgx.Batch{}
	b.Queue(`UPDATE pauses SET until = $2, reason = $3 WHERE id = $1`, after.ID, zeronull.Timestamptz(after.Until), after.Reason)
	queueEvent(b, &after, webhook.EventSendingPaused, "")
	queueRecord(b, push.ActorOf(ctx), &after, auditlog.PauseChange, differenceOf(old, &after))
	return after, tx.SendBatch(ctx, b).Close()
}

// inForceOf lists a tenant's pauses that are in force.
func inForceOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]pause.Pause, error) {
	rows, _ := tx.Query(ctx, `SELECT `+pauseColumns+` FROM pauses WHERE coalesce(tenant_id, `+pg.NoID+`) = $1 AND `+inForce+` ORDER BY created_at, id`, tenant)
	return pgx.CollectRows(rows, scanPause)
}

// DeletePause ends a pause of a tenant, or of the operator. What it has parked becomes due again. The errors are
// [push.ErrNotFound] and, for an operator's pause in a tenant's request, [pause.ErrOperators].
func (s *Store) DeletePause(ctx context.Context, tenant, id uuid.UUID) (p pause.Pause, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if err := lock(ctx, tx, tenant); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, `SELECT `+pauseColumns+` FROM pauses WHERE id = $1 AND (tenant_id = $2 OR tenant_id IS NULL) AND `+inForce+` FOR UPDATE`, id, tenant)
			if p, err = pgx.CollectExactlyOneRow(rows, scanPause); err != nil {
				return err
			}
			if p.Tenant != tenant {
				return pause.ErrOperators
			}
			if err := end(ctx, tx, push.ActorOf(ctx), p, endedByRequest); err != nil {
				return err
			}
			failpoint.Hit(failpoint.PauseDeleted)
			return nil
		})
	})
	return p, err
}

// The ways a pause ends, as its event names them.
const (
	endedByRequest = "request"
	endedByTime    = "until"
)

// end ends a pause that the transaction has locked.
func end(ctx context.Context, tx pgx.Tx, by push.Actor, p pause.Pause, how string) error {
	b := &pgx.Batch{}
	b.Queue(`UPDATE pauses SET ended_at = statement_timestamp() WHERE id = $1`, p.ID)
	queueEvent(b, &p, webhook.EventSendingResumed, how)
	queueRecord(b, by, &p, auditlog.PauseEnd, differenceOf(&p, nil))
	return tx.SendBatch(ctx, b).Close()
}

// endOver ends the pauses of a tenant whose time is over, and returns them.
func endOver(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) ([]pause.Pause, error) {
	rows, _ := tx.Query(ctx, `SELECT `+pauseColumns+` FROM pauses WHERE coalesce(tenant_id, `+pg.NoID+`) = $1 AND ended_at IS NULL AND until <= statement_timestamp() FOR UPDATE`, tenant)
	all, err := pgx.CollectRows(rows, scanPause)
	for _, p := range all {
		if err == nil {
			err = end(ctx, tx, push.Actor{Type: push.ActorSystem}, p, endedByTime)
		}
	}
	return all, err
}

// Pauses returns up to limit of the pauses that stop a tenant's sending now, after a position, the latest first: its own
// and the operator's. For [uuid.Nil] these are the operator's.
func (s *Store) Pauses(ctx context.Context, tenant uuid.UUID, after pause.Position, limit int) (page pause.Page, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `
			SELECT `+pauseColumns+` FROM pauses WHERE coalesce(tenant_id, `+pg.NoID+`) IN ($1, `+pg.NoID+`) AND `+inForce+`
				AND ($3 = `+pg.NoID+` OR (created_at, id) < ($2, $3)) ORDER BY created_at DESC, id DESC LIMIT $4`, tenant, after.CreatedAt, after.ID, limit+1)
		all, err := pgx.CollectRows(rows, scanPause)
		page = pause.Page{Pauses: all}
		if len(all) > limit {
			page.Pauses = all[:limit]
			page.Next = &pause.Position{CreatedAt: all[limit-1].CreatedAt, ID: all[limit-1].ID}
		}
		return err
	})
	return page, err
}

// Pause returns a pause that stops a tenant's sending now, or [push.ErrNotFound].
func (s *Store) Pause(ctx context.Context, tenant, id uuid.UUID) (p pause.Pause, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+pauseColumns+` FROM pauses WHERE id = $1 AND (tenant_id = $2 OR tenant_id IS NULL) AND `+inForce, id, tenant)
		p, err = pgx.CollectExactlyOneRow(rows, scanPause)
		return err
	})
	return p, err
}

// PauseOwner returns the tenant of a pause that is in force, [uuid.Nil] for the operator's, or [push.ErrNotFound].
func (s *Store) PauseOwner(ctx context.Context, id uuid.UUID) (tenant uuid.UUID, err error) {
	err = s.db.ReadPool.QueryRow(ctx, `SELECT coalesce(tenant_id, `+pg.NoID+`) FROM pauses WHERE id = $1 AND `+inForce, id).Scan(&tenant)
	return tenant, pg.Classify(err)
}

// CountParked counts the pushes that pauses have parked, by channel; [booking.OwnRoute] stands for the channels of tenants. It counts up
// to [pg.MostCounted] pushes. The index has the channel, so that their rows need not be read.
func (s *Store) CountParked(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	rows, _ := s.db.ReadPool.Query(ctx, `
		SELECT channel, count(*) FROM (SELECT channel FROM live WHERE pause_id IS NOT NULL LIMIT $1) p GROUP BY 1`, pg.MostCounted)
	return counts, pg.Classify(pg.Fill(counts, rows))
}

// PauseCounts counts the pauses of all tenants that are in force, by scope. It lists 0 for a scope without any.
func (s *Store) PauseCounts(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for _, scope := range pause.Scopes {
		counts[string(scope)] = 0
	}
	rows, _ := s.db.ReadPool.Query(ctx, `SELECT scope, count(*) FROM pauses WHERE `+inForce+` GROUP BY 1`)
	return counts, pg.Classify(pg.Fill(counts, rows))
}

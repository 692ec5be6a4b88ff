// Package bulk keeps bulk changes of pushes.
package bulk

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// Store keeps bulk changes.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store {
	return &Store{db: db, pushes: pushes}
}

// bulkColumns are the columns that scanBulk reads, of bulk_changes p.
const bulkColumns = `p.id, p.tenant_id, p.action, p.recipient, p.erased, p.channel, p.category, p.campaign_id, p.from_at, p.until_at, p.shift_s, p.send_at,
	p.actor, p.actor_id, p.status, p.listed, p.found, p.changed, p.refused, p.created_at, p.updated_at, p.ended_at`

func collectBulk(row pgx.CollectableRow) (bulkchange.Change, error) { return scanBulk(row) }

// scanBulk reads one row of [bulkColumns], and the columns after them into more.
func scanBulk(row pgx.CollectableRow, more ...any) (p bulkchange.Change, err error) {
	var (
		shift int64
		f     = &p.Filter
	)
	err = row.Scan(append([]any{&p.ID, &p.Tenant, (*string)(&p.Action), &f.Recipient, &p.Erased, &f.Channel, &f.Category, (*zeronull.UUID)(&f.Campaign),
		(*zeronull.Timestamptz)(&f.From), (*zeronull.Timestamptz)(&f.Until), &shift, (*zeronull.Timestamptz)(&p.SendAt),
		(*string)(&p.By.Type), (*zeronull.UUID)(&p.By.ID), (*string)(&p.Status), &p.Listed, &p.Found, &p.Changed, &p.Refused, &p.CreatedAt, &p.UpdatedAt, (*zeronull.Timestamptz)(&p.EndedAt)}, more...)...)
	p.Shift = time.Duration(shift) * time.Second
	return p, err
}

// NewChange is a bulk change to create.
type NewChange struct {
	bulkchange.Change
	RequestHash []byte // the hash of a request with an Idempotency-Key; the id is derived from that key
	Most        int    // the maximum number of the tenant's bulk changes that have not ended
	Invalid     error  // returned unless an earlier request created the change; nil if it is valid
}

// CreateBulkChange creates a bulk change, or finds the one that an earlier request with the same Idempotency-Key
// created. The errors are [bulkchange.ErrTooMany], n.Invalid, and [push.ErrKeyReused] if the earlier request was
// a different one.
func (s *Store) CreateBulkChange(ctx context.Context, n NewChange) (p bulkchange.Change, found bool, err error) {
	err = s.db.Change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant); err != nil { // the lock serialises creations
				return err
			}
			var hash []byte
			rows, _ := tx.Query(ctx, `SELECT `+bulkColumns+`, p.request_hash FROM bulk_changes p WHERE id = $1`, n.ID)
			all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (bulkchange.Change, error) { return scanBulk(row, &hash) })
			switch {
			case err != nil:
				return err
			case len(all) > 0 && (all[0].Tenant != n.Tenant || !bytes.Equal(hash, n.RequestHash)):
				return push.ErrKeyReused
			case len(all) > 0:
				p, found = all[0], earlier == 0 // an earlier run may have created it
				return nil
			case n.Invalid != nil:
				return n.Invalid
			}
			var others int
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM bulk_changes WHERE tenant_id = $1 AND ended_at IS NULL`, n.Tenant).Scan(&others); err != nil {
				return err
			}
			if others >= n.Most {
				return bulkchange.ErrTooMany
			}
			var key *int64
			f, by := n.Filter, push.ActorOf(ctx)
			if f.Recipient != "" {
				key = new(push.RecipientKey(n.Tenant, f.Recipient))
			}
			rows, _ = tx.Query(ctx, `
				INSERT INTO bulk_changes AS p (id, tenant_id, action, recipient, recipient_key, channel, category, campaign_id, from_at, until_at, shift_s, send_at, request_hash,
					actor, actor_id)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING `+bulkColumns,
				n.ID, n.Tenant, string(n.Action), f.Recipient, key, f.Channel, f.Category, zeronull.UUID(f.Campaign), zeronull.Timestamptz(f.From),
				zeronull.Timestamptz(f.Until), int64(n.Shift/time.Second), zeronull.Timestamptz(n.SendAt), n.RequestHash, string(by.Type), zeronull.UUID(by.ID))
			if p, err = pgx.CollectExactlyOneRow(rows, collectBulk); err != nil {
				return err
			}
			return auditlogs.Record(ctx, tx, p.Tenant, auditlog.BulkCreate, p.ID.String(), bulkDifference(&p))
		})
	})
	return p, found, err
}

// BulkChange returns a tenant's bulk change, or [push.ErrNotFound].
func (s *Store) BulkChange(ctx context.Context, tenant, id uuid.UUID) (p bulkchange.Change, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+bulkColumns+` FROM bulk_changes p WHERE id = $1 AND tenant_id = $2`, id, tenant)
		p, err = pgx.CollectExactlyOneRow(rows, collectBulk)
		return err
	})
	return p, err
}

// BulkChanges returns up to limit of a tenant's bulk changes after a position, the latest first. The zero position
// starts from the latest.
func (s *Store) BulkChanges(ctx context.Context, tenant uuid.UUID, after bulkchange.Position, limit int) (page bulkchange.Page, err error) {
	if after.ID == uuid.Nil {
		after.CreatedAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+bulkColumns+` FROM bulk_changes p WHERE tenant_id = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4`,
			tenant, after.CreatedAt, after.ID, limit+1)
		all, err := pgx.CollectRows(rows, collectBulk)
		page = bulkchange.Page{Changes: all}
		if len(all) > limit {
			page.Changes = all[:limit]
			page.Next = &bulkchange.Position{CreatedAt: all[limit-1].CreatedAt, ID: all[limit-1].ID}
		}
		return err
	})
	return page, err
}

// BulkRefused returns up to limit of the pushes that a tenant's bulk change could not change, after a position,
// ordered by send time.
func (s *Store) BulkRefused(ctx context.Context, tenant, id uuid.UUID, after push.Position, limit int) (page bulkchange.RefusedPage, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT 1 FROM bulk_changes WHERE id = $1 AND tenant_id = $2`, id, tenant)
		if _, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil {
			return err
		}
		rows, _ = c.Query(ctx, `
			SELECT push_id, recipient_key, send_at, outcome, rules, coalesce(sending_since, `+pg.NoTime+`), false FROM bulk_change_pushes
			WHERE change_id = $1 AND outcome NOT IN ('', 'changed', 'outside') AND (send_at, push_id) > ($2, $3) ORDER BY send_at, push_id LIMIT $4`,
			id, after.SendAt, after.ID, limit+1)
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[bulkchange.Push])
		page = bulkchange.RefusedPage{Pushes: all}
		if len(all) > limit {
			page.Pushes = all[:limit]
			page.Next = &push.Position{SendAt: all[limit-1].SendAt, ID: all[limit-1].ID}
		}
		return err
	})
	return page, err
}

// CancelBulkChange cancels a tenant's bulk change: a worker ends it before its next step. A change that has ended
// stays unchanged.
func (s *Store) CancelBulkChange(ctx context.Context, tenant, id uuid.UUID) (p bulkchange.Change, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, `SELECT `+bulkColumns+` FROM bulk_changes p WHERE id = $1 AND tenant_id = $2 FOR NO KEY UPDATE`, id, tenant)
			if p, err = pgx.CollectExactlyOneRow(rows, collectBulk); err != nil || p.Status != bulkchange.Running {
				return err
			}
			rows, _ = tx.Query(ctx, `UPDATE bulk_changes p SET status = 'canceling', resume_at = NULL, updated_at = clock_timestamp() WHERE id = $1 RETURNING `+bulkColumns, id)
			if p, err = pgx.CollectExactlyOneRow(rows, collectBulk); err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("status", bulkchange.Running, p.Status)
			return auditlogs.Record(ctx, tx, tenant, auditlog.BulkCancel, id.String(), d)
		})
	})
	return p, err
}

// bulkDifference returns the audit log's description of a new bulk change. It does not name the recipient.
func bulkDifference(p *bulkchange.Change) auditlogs.Difference {
	d, f := auditlogs.Difference{}, p.Filter
	d.Show("action", nil, p.Action)
	d.Hide("filter.recipient", nil, f.Recipient)
	d.Show("filter.channel", nil, f.Channel)
	d.Show("filter.category", nil, f.Category)
	d.Show("filter.campaign", nil, auditlogs.MaybeID(f.Campaign))
	d.Show("filter.from", nil, f.From)
	d.Show("filter.until", nil, f.Until)
	d.Show("send_at", nil, p.SendAt)
	if p.Shift != 0 {
		d.Show("shift", nil, p.Shift.String())
	}
	return d
}

// EraseFromBulk removes a recipient from bulk changes. A change whose filter names the recipient ends. Other changes
// drop the recipient's pushes, which the erasure cancels anyway. It returns the number of rows that it changed.
func (s *Store) EraseFromBulk(ctx context.Context, who quota.Recipient) (rows int, err error) {
	err = s.db.Change(ctx, who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		rows = 0
		for _, sql := range []string{
			`UPDATE bulk_changes SET recipient = '', recipient_key = NULL, request_hash = NULL, erased = true, updated_at = clock_timestamp(),
				status = CASE WHEN ended_at IS NULL THEN 'canceled' ELSE status END, ended_at = coalesce(ended_at, clock_timestamp())
			WHERE tenant_id = $1 AND recipient_key = $2`,
			`DELETE FROM bulk_change_pushes p USING bulk_changes b WHERE b.id = p.change_id AND b.tenant_id = $1 AND p.recipient_key = $2`,
		} {
			tag, err := c.Exec(ctx, sql, who.Tenant, push.RecipientKey(who.Tenant, who.ID))
			if err != nil {
				return err
			}
			rows += int(tag.RowsAffected())
		}
		return nil
	})
	return rows, err
}

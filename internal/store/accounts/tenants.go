// Package accounts keeps tenants, their caps, API keys, users and sessions.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store keeps tenants, keys, users and sessions.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}

// ErrDeleting reports that a tenant of that name is being deleted.
var ErrDeleting = errors.New("the tenant is being deleted")

// CreateTenant creates a tenant of that name or finds it; created reports which. While a tenant of that name is being
// deleted, CreateTenant returns [ErrDeleting].
func (s *Store) CreateTenant(ctx context.Context, name string) (id uuid.UUID, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	tag, err := s.db.Pool.Exec(ctx, `INSERT INTO tenants (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, uuid.New(), name)
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("create tenant: %w", pg.Classify(err))
	}
	if id, err = s.Tenant(ctx, name); errors.Is(err, push.ErrNotFound) {
		err = ErrDeleting
	}
	return id, tag.RowsAffected() == 1, err
}

// Tenant returns the id of the tenant of that name. If there is none, or it is being deleted, Tenant returns
// [push.ErrNotFound].
func (s *Store) Tenant(ctx context.Context, name string) (uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	var id uuid.UUID
	err := s.db.Pool.QueryRow(ctx, `SELECT id FROM tenants WHERE name = $1 AND deleting_at IS NULL`, name).Scan(&id)
	return id, pg.Classify(err)
}

// TenantInfo describes a tenant.
type TenantInfo struct {
	ID        uuid.UUID
	Name      string
	CreatedAt time.Time
	push.OwnCaps
	DeletingAt *time.Time // when its deletion began; nil if it is not being deleted
}

// Tenants lists all tenants by name.
func (s *Store) Tenants(ctx context.Context) ([]TenantInfo, error) {
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[TenantInfo], `SELECT id, name, created_at, pending_cap, recipients_cap, audience_cap, deleting_at FROM tenants ORDER BY name`)
}

// CapChange changes a tenant's own caps. A nil member stays.
type CapChange struct{ PendingPushes, RecipientsPerDay, AudienceBytes *NewCap }

// NewCap is a new cap; nil is the cap of all tenants.
type NewCap struct{ Value *int }

// on applies the change to caps.
func (c CapChange) on(caps push.OwnCaps) push.OwnCaps {
	set := func(to **int, from *NewCap) {
		if from != nil {
			*to = from.Value
		}
	}
	set(&caps.PendingPushes, c.PendingPushes)
	set(&caps.RecipientsPerDay, c.RecipientsPerDay)
	set(&caps.AudienceBytes, c.AudienceBytes)
	return caps
}

// CapTenant changes a tenant's caps and returns them, or [push.ErrNotFound].
func (s *Store) CapTenant(ctx context.Context, name string, change CapChange) (push.OwnCaps, error) {
	var caps push.OwnCaps
	write := func(ctx context.Context, tx pgx.Tx) error {
		var tenant uuid.UUID
		if err := tx.QueryRow(ctx, `SELECT id, pending_cap, recipients_cap, audience_cap FROM tenants WHERE name = $1 AND deleting_at IS NULL FOR UPDATE`, name).
			Scan(&tenant, &caps.PendingPushes, &caps.RecipientsPerDay, &caps.AudienceBytes); err != nil {
			return err
		}
		d, old := auditlogs.Difference{}, caps
		caps = change.on(caps)
		d.Show("pending_pushes", old.PendingPushes, caps.PendingPushes)
		d.Show("recipients_per_day", old.RecipientsPerDay, caps.RecipientsPerDay)
		d.Show("audience_bytes", old.AudienceBytes, caps.AudienceBytes)
		if len(d) == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `UPDATE tenants SET pending_cap = $2, recipients_cap = $3, audience_cap = $4 WHERE name = $1`, name, caps.PendingPushes, caps.RecipientsPerDay, caps.AudienceBytes); err != nil {
			return err
		}
		return auditlogs.Record(ctx, tx, tenant, auditlog.TenantCap, tenant.String(), d)
	}
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return write(ctx, tx) })
	})
	if err != nil {
		return caps, fmt.Errorf("cap tenant: %w", err)
	}
	return caps, nil
}

// ErrNameTaken reports that another tenant has that name.
var ErrNameTaken = errors.New("another tenant has that name")

// RenameTenant changes the name of a tenant. Its errors are [push.ErrNotFound] and [ErrNameTaken].
func (s *Store) RenameTenant(ctx context.Context, tenant uuid.UUID, to string) error {
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var from string
			if err := tx.QueryRow(ctx, `SELECT name FROM tenants WHERE id = $1 AND deleting_at IS NULL FOR NO KEY UPDATE`, tenant).Scan(&from); err != nil || from == to {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE tenants SET name = $2 WHERE id = $1`, tenant, to)
			if pg.HasCode(err, pg.UniqueViolation) {
				return ErrNameTaken
			}
			if err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("name", from, to)
			return auditlogs.Record(ctx, tx, tenant, auditlog.TenantRename, tenant.String(), d)
		})
	})
}

package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// CreateTenant makes a tenant of that name, or finds it: created tells which.
func (s *Store) CreateTenant(ctx context.Context, name string) (id uuid.UUID, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, `INSERT INTO tenants (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, uuid.New(), name)
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("create tenant: %w", classify(err))
	}
	id, err = s.Tenant(ctx, name)
	return id, tag.RowsAffected() == 1, err
}

// Tenant returns the id of the tenant of that name, or [push.ErrNotFound].
func (s *Store) Tenant(ctx context.Context, name string) (uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var id uuid.UUID
	err := s.pool.QueryRow(ctx, `SELECT id FROM tenants WHERE name = $1`, name).Scan(&id)
	return id, classify(err)
}

// TenantInfo is what is known of a tenant.
type TenantInfo struct {
	ID        uuid.UUID
	Name      string
	CreatedAt time.Time
	push.OwnCaps
}

// Tenants lists all tenants by name.
func (s *Store) Tenants(ctx context.Context) ([]TenantInfo, error) {
	return collect(ctx, s, pgx.RowToStructByPos[TenantInfo], `SELECT id, name, created_at, pending_cap, recipients_cap, audience_cap FROM tenants ORDER BY name`)
}

// CapTenant changes the caps of one tenant with the function and returns them, or [push.ErrNotFound].
func (s *Store) CapTenant(ctx context.Context, name string, change func(*push.OwnCaps)) (push.OwnCaps, error) {
	var caps push.OwnCaps
	write := func(ctx context.Context, tx pgx.Tx) error {
		var tenant uuid.UUID
		if err := tx.QueryRow(ctx, `SELECT id, pending_cap, recipients_cap, audience_cap FROM tenants WHERE name = $1 FOR UPDATE`, name).
			Scan(&tenant, &caps.PendingPushes, &caps.RecipientsPerDay, &caps.AudienceBytes); err != nil {
			return err
		}
		d, old := difference{}, caps
		change(&caps)
		d.show("pending_pushes", old.PendingPushes, caps.PendingPushes)
		d.show("recipients_per_day", old.RecipientsPerDay, caps.RecipientsPerDay)
		d.show("audience_bytes", old.AudienceBytes, caps.AudienceBytes)
		if len(d) == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `UPDATE tenants SET pending_cap = $2, recipients_cap = $3, audience_cap = $4 WHERE name = $1`, name, caps.PendingPushes, caps.RecipientsPerDay, caps.AudienceBytes); err != nil {
			return err
		}
		return record(ctx, tx, tenant, push.ActTenantCap, tenant.String(), d)
	}
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return write(ctx, tx) })
	})
	if err != nil {
		return caps, fmt.Errorf("cap tenant: %w", err)
	}
	return caps, nil
}

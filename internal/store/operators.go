package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// TenantWaiting counts the waiting work of a tenant.
type TenantWaiting struct {
	Tenant    uuid.UUID
	Name      string
	Waiting   int        // pushes, due or not
	UnderWay  int        // attempts under way
	Due       int        // waiting pushes that are due
	PutOff    int        // waiting pushes that a rule has put off
	Paused    int        // waiting pushes that were due, and that a pause of sending holds
	OldestDue *time.Time // nil: no push is due
}

// WaitingByTenant counts the waiting work of a tenant, or of all tenants for [uuid.Nil], in the order of their names.
// It reads all waiting pushes.
func (s *Store) WaitingByTenant(ctx context.Context, tenant uuid.UUID) ([]TenantWaiting, error) {
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[TenantWaiting], `
		SELECT t.id, t.name, count(l.push_id) FILTER (WHERE l.token IS NULL), count(l.token), count(*) FILTER (WHERE d.due),
			count(*) FILTER (WHERE l.put_off_at IS NOT NULL AND l.pause_id IS NULL AND l.token IS NULL AND NOT d.due),
			count(*) FILTER (WHERE l.pause_id IS NOT NULL AND l.token IS NULL), min(l.next_at) FILTER (WHERE d.due)
		FROM tenants t LEFT JOIN live l ON l.tenant_id = t.id CROSS JOIN LATERAL (SELECT l.token IS NULL AND l.next_at <= statement_timestamp() AS due) d
		WHERE $1::uuid IS NULL OR t.id = $1 GROUP BY t.id, t.name ORDER BY t.name`, zeronull.UUID(tenant))
}

// PushOwner returns the tenant of a push, or [push.ErrNotFound].
func (s *Store) PushOwner(ctx context.Context, id uuid.UUID) (tenant uuid.UUID, name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	err = s.db.Pool.QueryRow(ctx, `SELECT t.id, t.name FROM pushes p JOIN tenants t ON t.id = p.tenant_id WHERE p.id = $1`, id).Scan(&tenant, &name)
	return tenant, name, pg.Classify(err)
}

// EachTenant calls work for a tenant, or for all tenants for [uuid.Nil], in the order of their names. It stops at the
// first error.
func (s *Store) EachTenant(ctx context.Context, tenant uuid.UUID, work func(t accounts.TenantInfo) error) error {
	all, err := s.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if tenant == uuid.Nil || t.ID == tenant {
			if err := work(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// OtherTenants returns the number of tenants in a database with other names than name. It uses one connection and
// changes neither the database nor the role. A database without tables has no tenants.
func OtherTenants(ctx context.Context, databaseURL, name string) (others int, err error) {
	pc, err := pg.ParseURL(databaseURL)
	if err != nil {
		return 0, err
	}
	c, err := pg.ConnectOnce(ctx, pc.ConnConfig)
	if err != nil {
		return 0, fmt.Errorf("connect to Postgres: %w", err)
	}
	defer c.Close(ctx)
	var made bool
	if err := c.QueryRow(ctx, `SELECT to_regclass('tenants') IS NOT NULL`).Scan(&made); err != nil || !made {
		return 0, err
	}
	err = c.QueryRow(ctx, `SELECT count(*) FROM tenants WHERE name <> $1`, name).Scan(&others)
	return others, err
}

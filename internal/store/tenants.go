package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// CreateTenant makes a tenant of that name, or finds it: created tells which.
func (s *Store) CreateTenant(ctx context.Context, name string) (id uuid.UUID, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, `INSERT INTO tenants (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, [16]byte(uuid.New()), name)
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
	err := s.pool.QueryRow(ctx, `SELECT id FROM tenants WHERE name = $1`, name).Scan((*[16]byte)(&id))
	return id, classify(err)
}

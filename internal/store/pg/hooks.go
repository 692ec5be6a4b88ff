package pg

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// PoolSizes returns the sizes of both pools. For tests.
func (s *DB) PoolSizes() (changes, reads int32) {
	return s.Pool.Config().MaxConns, s.ReadPool.Config().MaxConns
}

// Rest makes the store forget which tenants were at work, and which partitions there are. It fails if the store is closed, or
// uses a connection. For tests.
func (s *DB) Rest(ctx context.Context) error {
	if s.Pool.Stat().AcquiredConns()+s.ReadPool.Stat().AcquiredConns() > 0 {
		return errors.New("a connection is in use")
	}
	s.Layouts.Forget()
	s.Neighbours = bulkhead.Neighbours[uuid.UUID]{}
	return errors.Join(s.Pool.Ping(ctx), s.ReadPool.Ping(ctx))
}

// ForgetLayouts makes the store read the list of partitions again. For tests.
func (s *DB) ForgetLayouts() { s.Layouts.Forget() }

// ReadOnlySessions reports whether Postgres lets the sessions that read for tenants write nothing. For tests.
func (s *DB) ReadOnlySessions(ctx context.Context) (only bool, err error) {
	err = s.ReadPool.QueryRow(ctx, `SELECT current_setting('transaction_read_only')::bool`).Scan(&only)
	return only, err
}

// RepeatReads runs work on a connection for reads. For tests.
func (s *DB) RepeatReads(ctx context.Context, work func(ctx context.Context, c *pgxpool.Conn, earlier int) error) error {
	return s.repeat(ctx, s.ReadPool, work)
}

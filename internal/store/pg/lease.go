package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// LeaseTime is the duration of a worker's lease on a piece of work. Taking the work again renews the lease.
const LeaseTime = 15 * time.Second

// Leased is a table of work that workers share: campaigns, bulk changes, policy operations. One worker at a time
// leases a row, by the columns worker and lease_until. The lease avoids duplicate work but guarantees nothing: two
// workers may do the same step, so each step checks the state under the row's lock. The audit does not use it, because
// it has a single pass that a worker keeps for minutes, without turns among tenants.
type Leased[T any] struct {
	Table   string
	Open    string // the condition of rows with work to do
	Columns string // expressions of the row p and its tenant t
	Scan    pgx.RowToFunc[T]
}

// Take leases the row that has waited longest for its next step, among the rows that the worker or no worker has
// leased. It skips rows of the tenants in except. It returns nil if there is no row.
func (l Leased[T]) Take(ctx context.Context, s *DB, worker uuid.UUID, except []uuid.UUID) (*T, error) {
	all, err := Collect(ctx, s, l.Scan, fmt.Sprintf(`
		UPDATE %[1]s p SET worker = $1, lease_until = clock_timestamp() + $2::interval
		FROM tenants t
		WHERE t.id = p.tenant_id AND p.id = (
			SELECT id FROM %[1]s
			WHERE %[2]s AND tenant_id <> ALL (coalesce($3::uuid[], '{}')) AND (worker = $1 OR lease_until < clock_timestamp() IS NOT FALSE)
			ORDER BY CASE WHEN worker = $1 THEN lease_until - $2::interval ELSE lease_until END NULLS FIRST LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
		)
		RETURNING %[3]s`, l.Table, l.Open, l.Columns), worker, LeaseTime, except)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// errChanged: the row is no longer in the state that the step needs. The next step reads the new state.
var errChanged = errors.New("the state of the row has changed")

// LeasedStep locks the row of a query, runs work in the same transaction, and commits. It does nothing if there is no
// row.
func LeasedStep[T any](ctx context.Context, s *DB, scan pgx.RowToFunc[T], work func(ctx context.Context, c *pgxpool.Conn, tx pgx.Tx, row *T) error, query string, args ...any) error {
	err := s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, query+` FOR NO KEY UPDATE`, args...)
			found, err := pgx.CollectRows(rows, scan)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return errChanged
			}
			return work(ctx, c, tx, &found[0])
		})
	})
	if errors.Is(err, errChanged) {
		return nil
	}
	return err
}

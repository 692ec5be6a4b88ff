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

// LeaseTime is how long a worker has a piece of work without a sign of life.
const LeaseTime = 15 * time.Second

// Leased is a table of work that workers share: campaigns, bulk changes, operations of policies. One worker at a time has a
// row, by the columns worker and lease_until. The lease saves work, and promises nothing: two workers may do the same step,
// which each step finds out under the row's lock. The audit is not among them: it has one pass for all, which a worker keeps for
// minutes, and which takes no turns among tenants.
type Leased[T any] struct {
	Table   string
	Open    string // the condition of a row that has work to do
	Columns string // of the row p and its tenant t
	Scan    pgx.RowToFunc[T]
}

// Take gives a worker the row that has waited longest for its next step, but for those of some tenants: one that the worker
// has, or one that no worker has. It returns nil if there is none.
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

// errElse: the row is not as its step needs it. The next step does what it needs now.
var errElse = errors.New("the row has another state")

// LeasedStep runs work in a transaction that has locked the row of a query, and commits. It does nothing if there is no row.
func LeasedStep[T any](ctx context.Context, s *DB, scan pgx.RowToFunc[T], work func(ctx context.Context, c *pgxpool.Conn, tx pgx.Tx, row *T) error, query string, args ...any) error {
	err := s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, query+` FOR NO KEY UPDATE`, args...)
			found, err := pgx.CollectRows(rows, scan)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return errElse
			}
			return work(ctx, c, tx, &found[0])
		})
	})
	if errors.Is(err, errElse) {
		return nil
	}
	return err
}

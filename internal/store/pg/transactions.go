package pg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// work uses a connection. earlier is the number of runs before this one.
type work func(ctx context.Context, c *pgxpool.Conn, earlier int) error

// InTx runs work on a connection. It runs work again from the start after errors that a repetition can fix. Each
// statement is a transaction of its own unless work begins one. If work fails, its open transaction is rolled back. An
// earlier run may have been committed although its reply was lost, so work must recognise the rows that it has already
// written.
func (p conns) InTx(ctx context.Context, work work) error {
	ctx, cancel := context.WithTimeout(ctx, p.db.Cfg.Timeout)
	defer cancel()
	tries := p.db.Tries()
	for earlier := 0; ; earlier++ {
		err := OnConn(ctx, p.Pool, func(c *pgxpool.Conn) error {
			if err := p.db.Layouts.Fresh(ctx, c); err != nil {
				return err
			}
			return work(ctx, c, earlier)
		})
		if again, err := tries.Again(ctx, err); !again {
			return err
		}
	}
}

// Change is [DB.InTx] for a request of one tenant. It limits a tenant to a share of the connections.
func (s *DB) Change(ctx context.Context, tenant uuid.UUID, work work) error {
	return s.Within(ctx, s.Changes, tenant, func(ctx context.Context) error { return s.InTx(ctx, work) })
}

// SQL values that replace null for [pgx.RowToStructByPos], which cannot store null in plain struct fields.
const (
	// NoID is the zero uuid.
	NoID = `'00000000-0000-0000-0000-000000000000'::uuid`
	// NoTime is the zero time.
	NoTime = `'0001-01-01Z'::timestamptz`
)

// Collect returns the rows of a statement that belongs to no tenant's request. It runs the statement once.
func Collect[T any](ctx context.Context, s *DB, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	rows, _ := s.Pool.Query(ctx, sql, args...)
	all, err := pgx.CollectRows(rows, scan)
	return all, Classify(err)
}

// Read is [DB.Change] for a request that only reads. It uses ReadPool, whose long statements Postgres cancels.
func (s *DB) Read(ctx context.Context, tenant uuid.UUID, work func(ctx context.Context, c Reader) error) error {
	return s.Within(ctx, s.reads, tenant, func(ctx context.Context) error {
		return conns{s.ReadPool, s}.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			r := Reader{Conn: c}
			if s.route.pooled.Load() {
				r.timeout = Milliseconds(s.Cfg.ReadTimeout)
			}
			return work(ctx, r)
		})
	})
}

// Snapshot runs work for a tenant in a read-only transaction that sees one snapshot.
func (s *DB) Snapshot(ctx context.Context, tenant uuid.UUID, work func(ctx context.Context, tx pgx.Tx) error) error {
	return s.readIn(ctx, tenant, pgx.RepeatableRead, work)
}

// readIn runs work in a read-only transaction at an isolation level.
func (s *DB) readIn(ctx context.Context, tenant uuid.UUID, level pgx.TxIsoLevel, work func(ctx context.Context, tx pgx.Tx) error) error {
	return s.Read(ctx, tenant, func(ctx context.Context, c Reader) error {
		return pgx.BeginTxFunc(ctx, c.Conn, pgx.TxOptions{IsoLevel: level, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if c.timeout != "" {
				if _, err := tx.Exec(ctx, ReadSettingsSQL, c.timeout); err != nil {
					return err
				}
			}
			return work(ctx, tx)
		})
	})
}

// Within calls do while it holds one of the tenant's connections of the part. If all are in use, the error blames the
// tenant's load only if Postgres has answered meanwhile.
func (s *DB) Within(ctx context.Context, part *part, tenant uuid.UUID, do func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	leave, err := s.enter(ctx, part, tenant)
	if err != nil {
		return err
	}
	defer func() { leave(err) }()
	return do(ctx)
}

// enter waits for one of the tenant's connections of the part. Call leave with the outcome to return it.
func (s *DB) enter(ctx context.Context, part *part, tenant uuid.UUID) (leave func(err error), err error) {
	answers := part.answers.Load()
	if tenant != uuid.Nil { // work of the service itself does not count as a neighbour
		s.Neighbours.Seen(tenant)
	}
	loan, err := part.Acquire(ctx, tenant, s.Neighbours.Weight())
	switch {
	case err != nil && part.answers.Load() == answers:
		return nil, fmt.Errorf("%w: %v, and Postgres did not answer", push.ErrUnavailable, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	began := time.Now()
	return func(err error) {
		if !errors.Is(err, push.ErrUnavailable) {
			part.answers.Add(1)
		}
		s.Neighbours.Rest(loan, began)
	}, nil
}

// rowTime finds the time of a row in an error detail of Postgres, in any language.
var rowTime = regexp.MustCompile(`\((?:send_at|started_at|created_at)\) = \(([^()]+)\)`)

// MakePart makes the missing partition after an error that a row has none. Most partitions are made in advance. made
// is 0 if another program was faster. parted reports whether the partition exists now. MakePart returns the original
// error, or the reason why it could not make the partition; that may be temporary.
func (s *DB) MakePart(ctx context.Context, err error) (made int, parted bool, _ error) {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code != checkViolation || pgErr.ConstraintName != "" {
		return 0, false, err
	}
	key := rowTime.FindStringSubmatch(pgErr.Detail)
	if key == nil {
		return 0, false, err
	}
	defer s.Layouts.Forget()
	failed := s.Pool.QueryRow(ctx, `SELECT make_partitions($1, at, at) FROM (SELECT $2::text::timestamptz AS at) row`, pgErr.TableName, key[1]).Scan(&made)
	if failed != nil {
		return 0, false, failed
	}
	return made, true, err
}

// OnConn runs work on a connection and rolls back a transaction that work leaves open.
func OnConn(ctx context.Context, pool *pgxpool.Pool, work func(c *pgxpool.Conn) error) (err error) {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { release(ctx, pool, c, err) }()
	return work(c)
}

// release rolls back a transaction that is still open, and releases its connection. err is the error of the run.
func release(ctx context.Context, pool *pgxpool.Pool, c *pgxpool.Conn, err error) {
	defer c.Release()
	if HasCode(err, readOnly) {
		pool.Reset() // all connections lead to a server that became a standby
	}
	if !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, "rollback") // if this fails, Release closes the connection
	}
}

// Fill adds rows of two columns, key and value, to a map.
func Fill[K comparable, V any](all map[K]V, rows pgx.Rows) error {
	var (
		key   K
		value V
	)
	_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		all[key] = value
		return nil
	})
	return err
}

// Tries counts the runs of a transaction, and decides after each whether to run it again.
type Tries struct {
	db             *DB
	tries, changes int
}

// Tries returns the tries of a new transaction.
func (s *DB) Tries() *Tries { return &Tries{db: s} }

// Again reports whether to run the transaction again from its start after an error. First it removes the cause of the
// error, or waits. Otherwise it returns the error, classified.
func (t *Tries) Again(ctx context.Context, err error) (bool, error) {
	made, parted, err := t.db.MakePart(ctx, err)
	if made > 0 {
		return true, nil // the rows of one transaction may need several new partitions
	}
	if old, ok := errors.AsType[outdated](err); ok && t.tries < 4 {
		if err = old.Reload(ctx); err == nil {
			t.tries++
			return true, nil
		}
	}
	changed := Repartitioned(err) && t.changes < 25
	if err == nil || t.tries == 4 && !changed || !t.db.Layouts.Mend(err) && !parted && !Again(err) {
		return false, Classify(err)
	}
	wait := 20 * time.Millisecond
	if changed {
		t.changes++ // many partitions may be dropped in quick succession
	} else {
		wait <<= 2 * t.tries
		t.tries++
	}
	select {
	case <-ctx.Done():
		return false, Classify(err)
	case <-time.After(wait):
		return true, nil
	}
}

// Session is a connection for one run of a transaction whose steps the caller takes one by one.
type Session struct {
	*pgxpool.Conn
	pool  *pgxpool.Pool
	leave func(err error)
}

// Session acquires a connection for changes.
func (s *DB) Session(ctx context.Context) (*Session, error) {
	return s.session(ctx, s.Pool, func(error) {})
}

// ReadSession acquires a connection for a request of one tenant that only reads. It limits the tenant to a share of the
// connections.
func (s *DB) ReadSession(ctx context.Context, tenant uuid.UUID) (*Session, error) {
	leave, err := s.enter(ctx, s.reads, tenant)
	if err != nil {
		return nil, err
	}
	x, err := s.session(ctx, s.ReadPool, leave)
	if err != nil {
		leave(Classify(err))
	}
	return x, err
}

// session acquires a connection of a pool, with layouts that are known to be in force.
func (s *DB) session(ctx context.Context, pool *pgxpool.Pool, leave func(error)) (*Session, error) {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Layouts.Fresh(ctx, c); err != nil {
		release(ctx, pool, c, err)
		return nil, err
	}
	return &Session{c, pool, leave}, nil
}

// End rolls back a transaction that is still open, and releases the connection. err is the error of the run; nil: it
// succeeded.
func (x *Session) End(ctx context.Context, err error) {
	release(ctx, x.pool, x.Conn, err)
	x.leave(Classify(err))
}

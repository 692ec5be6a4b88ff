package pg

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// route is the way to Postgres: direct, or through a pooler, such as PgBouncer in transaction mode. A pooler gives every
// transaction any of its connections to Postgres. So nothing of a session outlives a transaction: no prepared statement,
// no setting, no lock.
//
// Through a pooler, statements have no name and are planned each time, unless the pooler has them follow their client;
// settings are those of the role (see [setRole]); what only reads says so in its transaction (see [Reader]). Nothing
// takes an exchange more.
type route struct {
	known, pooled atomic.Bool
	unnamed       atomic.Bool // no statement can be prepared
}

// find reports whether the way leads through a pooler. The first time it connects to find out, and makes settings those
// of the role if so.
func (r *route) find(ctx context.Context, cc *pgx.ConnConfig, settings map[string]string) (pooled bool, err error) {
	if r.known.Load() {
		return r.pooled.Load(), nil
	}
	if pooled, err = isPooled(ctx, cc); err != nil {
		return false, err
	}
	keeps := true
	if pooled {
		if keeps, err = prepareRoute(ctx, cc, settings); err != nil {
			return false, err
		}
	}
	r.pooled.Store(pooled)
	r.unnamed.Store(!keeps)
	r.known.Store(true)
	return pooled, nil
}

// learn learns from errors what find did not know, or what has changed since. It reports whether the connection is of no
// use any more.
func (r *route) learn(err *pgconn.PgError) (useless bool) {
	switch {
	case HasCode(err, unknownStatement, duplicateStatement):
		r.unnamed.Store(true)
		return true
	case isUnsupported(err):
		r.known.Store(false)
	}
	return false
}

// isUnsupported reports whether PgBouncer refuses a parameter. It has one code for all its errors.
func isUnsupported(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.Contains(pgErr.Message, "unsupported startup parameter")
}

// ownParameter is a parameter of a session that only Postgres itself keeps. A pooler refuses it, as PgBouncer does, or
// forgets it.
const ownParameter = "sendquota.direct"

// isPooled connects once to find out.
func isPooled(ctx context.Context, cc *pgx.ConnConfig) (bool, error) {
	cc = cc.Copy()
	cc.RuntimeParams[ownParameter] = "on"
	c, err := ConnectOnce(ctx, cc)
	if isUnsupported(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	var direct bool
	err = c.QueryRow(ctx, `SELECT coalesce(current_setting('`+ownParameter+`', true), '') = 'on'`).Scan(&direct)
	return !direct, err
}

// ConnectOnce connects for a few statements, which are not prepared.
func ConnectOnce(ctx context.Context, cc *pgx.ConnConfig) (*pgx.Conn, error) {
	cc = cc.Copy()
	cc.Tracer = nil // it is not a connection of the pool
	unprepared(cc)
	return pgx.ConnectConfig(ctx, cc)
}

// unprepared has statements sent without a name. What is remembered of them, the types of their arguments and columns,
// is the same on every connection to a database.
func unprepared(cc *pgx.ConnConfig) {
	cc.DefaultQueryExecMode, cc.StatementCacheCapacity = pgx.QueryExecModeCacheDescribe, 0
}

// prepareRoute makes settings those of the role, and reports whether statements can be prepared.
func prepareRoute(ctx context.Context, cc *pgx.ConnConfig, settings map[string]string) (keepsStatements bool, err error) {
	c, err := ConnectOnce(ctx, cc)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	if err := setRole(ctx, c, settings); err != nil {
		return false, err
	}
	return keepsPrepared(ctx, c)
}

// keepsPrepared reports whether a pooler has prepared statements follow their client from connection to connection, as
// PgBouncer does since 1.21, unless its max_prepared_statements is 0. It then gives them names of its own.
func keepsPrepared(ctx context.Context, c *pgx.Conn) (keeps bool, err error) {
	name := uuid.NewString()
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Prepare(ctx, name, `SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE name LIKE 'PGBOUNCER\_%')`); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, name).Scan(&keeps); err != nil {
			return err
		}
		return c.Deallocate(ctx, name)
	})
	return keeps, err
}

// setRole makes settings the defaults of the role in its database, unless they are already. Every role may do that to
// itself. Connections that the pooler has made before keep what they had until it makes them anew; the one that this
// runs on, perhaps the first of them all, gets the settings at once.
//
// On a standby nothing can be altered; the next program that finds a primary does it.
func setRole(ctx context.Context, c *pgx.Conn, settings map[string]string) error {
	var database string
	if err := c.QueryRow(ctx, `SELECT current_database()`).Scan(&database); err != nil {
		return err
	}
	// One program after another: the second of two that alter a role at a time would fail.
	pairs, alter, set := []string{}, `SELECT pg_advisory_xact_lock(7321, 2); `, ``
	for name, value := range settings {
		is := name + ` = '` + strings.ReplaceAll(value, `'`, `''`) + `'; `
		pairs, set = append(pairs, name+"="+value), set+`SET `+is
		alter += `ALTER ROLE SESSION_USER IN DATABASE ` + pgx.Identifier{database}.Sanitize() + ` SET ` + is
	}
	if _, err := c.Exec(ctx, set); err != nil {
		return err
	}
	var done bool
	err := c.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase JOIN pg_roles r ON r.oid = s.setrole
			WHERE d.datname = current_database() AND r.rolname = session_user AND s.setconfig @> $1)`, pairs).Scan(&done)
	if err != nil || done {
		return err
	}
	if _, err = c.Exec(ctx, alter); HasCode(err, readOnly, MayNot) {
		return nil
	}
	return err
}

// Reader runs statements that only read, on a connection of the readPool: directly, or through a pooler. There it says
// in the same exchange that the transaction only reads, and for how long Postgres may work on each of its statements;
// the statements of one exchange are one transaction.
type Reader struct {
	Conn    *pgxpool.Conn
	timeout string // in milliseconds; empty: the session has its settings
}

const ReadSettingsSQL = `SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', $1, true)`

// SendBatch is that of [pgx.Conn].
func (r Reader) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if r.timeout == "" {
		return r.Conn.SendBatch(ctx, b)
	}
	all := &pgx.Batch{}
	all.Queue(ReadSettingsSQL, r.timeout)
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	results := r.Conn.SendBatch(ctx, all)
	_, _ = results.Exec() // what follows has its error
	return results
}

// Query is that of [pgx.Conn]. The rows must be closed.
func (r Reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if r.timeout == "" {
		return r.Conn.Query(ctx, sql, args...)
	}
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	results := r.SendBatch(ctx, b)
	rows, err := results.Query()
	return batchRows{rows, results}, err
}

// Snapshot has work read what a tenant asks for as it was at one moment.
func (s *DB) Snapshot(ctx context.Context, tenant uuid.UUID, work func(ctx context.Context, tx pgx.Tx) error) error {
	return s.readIn(ctx, tenant, pgx.RepeatableRead, work)
}

// readIn has work read in a transaction, at a level of isolation.
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

// batchRows are the rows of the last statement of a batch, which is closed with them.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
}

// Close closes both.
func (r batchRows) Close() {
	r.Rows.Close()
	_ = r.results.Close()
}

// Querier is a connection, a transaction or a [Reader].
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Batcher is a connection, or a [Reader].
type Batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Execer is a connection or a transaction.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

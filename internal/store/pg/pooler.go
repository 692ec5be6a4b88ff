package pg

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// route is the way to Postgres: direct, or through a pooler such as PgBouncer in transaction mode. A pooler gives each
// transaction any of its connections to Postgres. So no state of a session survives a transaction: no prepared
// statement, no setting, no lock.
//
// Through a pooler, statements are unnamed and planned each time, unless the pooler tracks prepared statements.
// Settings are defaults of the role (see [setRole]). A transaction that only reads declares that itself (see
// [Reader]). None of this costs another round trip.
type route struct {
	known, pooled atomic.Bool
	unnamed       atomic.Bool // statements cannot be prepared
}

// find reports whether the route goes through a pooler. Its first call connects to find out, and, if there is a
// pooler, makes settings the defaults of the role.
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

// learn updates the route after an error that contradicts it. It reports whether the connection is unusable.
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

// isUnsupported reports whether PgBouncer rejected a parameter. PgBouncer uses one code for all its errors.
func isUnsupported(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.Contains(pgErr.Message, "unsupported startup parameter")
}

// ownParameter is a session parameter that only Postgres itself keeps. A pooler rejects it, as PgBouncer does, or
// ignores it.
const ownParameter = "sendquota.direct"

// isPooled connects once and reports whether a pooler answers.
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

// ConnectOnce opens a connection for a few statements, which are not prepared.
func ConnectOnce(ctx context.Context, cc *pgx.ConnConfig) (*pgx.Conn, error) {
	cc = cc.Copy()
	cc.Tracer = nil // the connection does not belong to the pool
	unprepared(cc)
	return pgx.ConnectConfig(ctx, cc)
}

// unprepared makes connections send statements without a name. They cache only the types of arguments and columns,
// which are the same on every connection to a database.
func unprepared(cc *pgx.ConnConfig) {
	cc.DefaultQueryExecMode, cc.StatementCacheCapacity = pgx.QueryExecModeCacheDescribe, 0
}

// prepareRoute makes settings the defaults of the role, and reports whether statements can be prepared.
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

// keepsPrepared reports whether a pooler makes prepared statements available on each connection that it assigns to a
// client. PgBouncer does so since 1.21, unless max_prepared_statements is 0. It then gives the statements names of its
// own.
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

// setRole makes settings the defaults of the role in its database, unless they are already. Every role can change its
// own defaults. Existing server connections of the pooler keep their settings until the pooler reopens them. The
// connection that runs setRole, possibly the pooler's first, gets the settings at once.
//
// A standby cannot change them. The next program that connects to a primary does.
func setRole(ctx context.Context, c *pgx.Conn, settings map[string]string) error {
	var database string
	if err := c.QueryRow(ctx, `SELECT current_database()`).Scan(&database); err != nil {
		return err
	}
	// The lock serialises programs: of two that alter a role concurrently, the second would fail.
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
	if _, err = c.Exec(ctx, alter); HasCode(err, readOnly, InsufficientPrivilege) {
		return nil
	}
	return err
}

package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sendquota/sendquota/internal/push"
)

// ErrStale is the error of a statement that may need a partition which was made after the layout was read. See
// [Layouts.Mend].
var ErrStale = errors.New("the partitions of the tables have changed")

// Error codes of Postgres: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	// readOnly: the transaction cannot write, because the server is or became a standby.
	readOnly = "25006"
	// unknownStatement and duplicateStatement: a prepared statement is missing, or its name is taken. A pooler has given
	// the connection another session.
	unknownStatement, duplicateStatement = "26000", "42P05"

	undefinedTable, undefinedColumn, undefinedFunction = "42P01", "42703", "42883"
	// outOfLocks: for example, a statement that names a partitioned table locks all of its partitions.
	outOfLocks = "53200"
	// checkViolation also means that no partition exists for a row.
	checkViolation = "23514"

	// InsufficientPrivilege is the code of insufficient_privilege.
	InsufficientPrivilege = "42501"
	// UniqueViolation is the code of unique_violation.
	UniqueViolation = "23505"
	// ForeignKeyViolation is the code of foreign_key_violation.
	ForeignKeyViolation = "23503"
	// Canceled is the code of query_canceled: a timeout or an operator canceled the statement.
	Canceled = "57014"
)

// passing lists codes and classes of errors after which an immediate second run of the transaction may succeed: the
// connection broke, the server is starting or stopping, a pooler switched sessions, or transactions conflicted.
var passing = []string{"08", "57P01", "57P02", "57P03", "25P03", "25P04", readOnly, unknownStatement, duplicateStatement, "40001", "40P01", "53300", "53200"}

// trouble lists codes and classes of errors that no request causes: the server lacks resources, was asked to stop the
// transaction, could not lock something in time, or lacks a migration or a privilege.
var trouble = []string{"53", "57", "58", "55P03", undefinedTable, undefinedColumn, undefinedFunction, InsufficientPrivilege}

// HasCode reports whether err is an error of Postgres with one of the codes or classes. A class is the first two
// characters of a code.
func HasCode(err error, codes ...string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(pgErr.Code, code) })
}

// Again reports whether a second run of the transaction may succeed.
func Again(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return HasCode(err, passing...)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Classify wraps errors that may pass with time in [push.ErrUnavailable], and returns [push.ErrNotFound] for a missing
// row.
func Classify(err error) error {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return push.ErrNotFound
	case HasCode(err, undefinedTable, undefinedColumn, undefinedFunction):
		return fmt.Errorf("%w: the database lacks a migration; run: sendquota migrate: %w", push.ErrUnavailable, err)
	case isUnready(err), isUnconnected(err), errors.Is(err, ErrStale), isOutdated(err):
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	case err != nil && (Again(err) || HasCode(err, trouble...) || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	return err
}

func isUnready(err error) bool {
	_, ok := errors.AsType[*UnreadyError](err)
	return ok
}

func isUnconnected(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// outdated is the error of a transaction that used terms which are no longer in force. Reload reads the current ones;
// then the transaction runs again.
type outdated interface {
	error
	Reload(ctx context.Context) error
}

func isOutdated(err error) bool {
	_, ok := errors.AsType[outdated](err)
	return ok
}

// UnreadyError is the reason why the services cannot use the database.
type UnreadyError struct {
	state  string // unreachable, wrong_encoding, read_only, not_migrated or not_writable
	detail string
	err    error // the cause; nil: none
}

// Error returns the state and the detail as one sentence.
func (e *UnreadyError) Error() string { return "the database is " + e.state + ": " + e.detail }

// State returns the state as one word, such as read_only.
func (e *UnreadyError) State() string { return e.state }

// Detail returns the explanation. It names no host, role or database.
func (e *UnreadyError) Detail() string { return e.detail }

// Unwrap returns the cause, or nil.
func (e *UnreadyError) Unwrap() error { return e.err }

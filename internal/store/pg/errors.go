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

// The codes of Postgres' errors, or their first two characters, which name a class:
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	readOnly = "25006" // the transaction may not write: the server is a standby, or was made one

	// A statement that was prepared is not there, or one of its name is: the connection leads to another session than
	// before.
	unknownStatement, duplicateStatement = "26000", "42P05"

	undefinedTable, undefinedColumn, undefinedFunction = "42P01", "42703", "42883"
	MayNot                                             = "42501"
	outOfLocks                                         = "53200" // a statement that names a partitioned table locks all of it
	checkViolation                                     = "23514" // also: there is no partition for a row
	UniqueViolation                                    = "23505"
	ForeignKeyViolation                                = "23503"
	Canceled                                           = "57014" // by a time-out, or by hand
)

// passing are errors after which the same transaction, run again at once, may succeed: the connection broke, the server
// goes down or comes up, a pooler gave it to another session, or transactions got in each other's way.
var passing = []string{"08", "57P01", "57P02", "57P03", "25P03", "25P04", readOnly, unknownStatement, duplicateStatement, "40001", "40P01", "53300", "53200"}

// trouble are errors that are no fault of a request: the server lacks something, was told to stop the transaction,
// could not lock what it needs in time, or lacks a migration or a privilege.
var trouble = []string{"53", "57", "58", "55P03", undefinedTable, undefinedColumn, undefinedFunction, MayNot}

// HasCode reports whether err is of Postgres, with one of the codes or classes.
func HasCode(err error, codes ...string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(pgErr.Code, code) })
}

// Again reports whether running a transaction again can help.
func Again(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return HasCode(err, passing...)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Classify turns what can be tried again later into [push.ErrUnavailable].
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

// outdated is the error of a transaction that used what is not in force any more. It runs again after Reload has read what is.
type outdated interface {
	error
	Reload(ctx context.Context) error
}

func isOutdated(err error) bool {
	_, ok := errors.AsType[outdated](err)
	return ok
}

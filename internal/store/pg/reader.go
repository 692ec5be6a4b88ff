package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Reader runs statements that only read, on a connection of ReadPool. Through a pooler, it sends the read-only mode
// and the statement timeout in the same round trip. The statements of one round trip are one transaction.
type Reader struct {
	Conn    *pgxpool.Conn
	timeout string // in milliseconds; empty: the session already has the settings
	bitmaps bool   // statements may use bitmap scans
}

// WithBitmaps returns a reader whose statements may use bitmap scans, despite the planner settings of the session. A GIN index can
// be used by these only.
func (r Reader) WithBitmaps() Reader {
	r.bitmaps = true
	return r
}

// ReadSettingsSQL makes a transaction read-only and limits its statements to $1 milliseconds.
const ReadSettingsSQL = `SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', $1, true)`

// SendBatch does what [pgx.Conn.SendBatch] does.
func (r Reader) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	all := &pgx.Batch{}
	if r.timeout != "" {
		all.Queue(ReadSettingsSQL, r.timeout)
	}
	if r.bitmaps {
		all.Queue(`SELECT set_config('enable_bitmapscan', 'on', true)`)
	}
	settings := all.Len()
	if settings == 0 {
		return r.Conn.SendBatch(ctx, b)
	}
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	results := r.Conn.SendBatch(ctx, all)
	for range settings {
		_, _ = results.Exec() // the following results return its error
	}
	return results
}

// Query does what [pgx.Conn.Query] does. The caller must close the rows.
func (r Reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if r.timeout == "" && !r.bitmaps {
		return r.Conn.Query(ctx, sql, args...)
	}
	b := &pgx.Batch{}
	b.Queue(sql, args...)
	results := r.SendBatch(ctx, b)
	rows, err := results.Query()
	return batchRows{rows, results}, err
}

// batchRows closes a batch together with the rows of its last statement.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
}

// Close closes the rows and the batch.
func (r batchRows) Close() {
	r.Rows.Close()
	_ = r.results.Close()
}

// Querier is a connection, a transaction or a [Reader].
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Batcher is a connection or a [Reader].
type Batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Execer is a connection or a transaction.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

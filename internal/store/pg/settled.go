package pg

import (
	"context"
	"time"
)

// A transaction that began before a commit may not see what was committed, and may itself commit later. These waits end when no such
// transaction is left.

// settledPoll is the longest pause between two looks.
const settledPoll = 10 * time.Millisecond

// AwaitWriters waits until all transactions have ended that have a transaction id now: after it, every transaction that takes its id
// before it reads sees what was committed before the call. It gives up after limit.
func (db *DB) AwaitWriters(ctx context.Context, limit time.Duration) error {
	var last string // a new id, so that all others are smaller; the xmax of a snapshot is not, if the latest have not ended
	if err := db.Pool.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&last); err != nil {
		return Classify(err)
	}
	return db.await(ctx, limit, func() (over bool, err error) {
		err = db.Pool.QueryRow(ctx, `SELECT $1::xid8 < pg_snapshot_xmin(pg_current_snapshot())`, last).Scan(&over)
		return over, err
	})
}

// AwaitAll waits until all transactions of this database have ended that are under way now, whether they have written anything or not. It
// gives up after limit.
func (db *DB) AwaitAll(ctx context.Context, limit time.Duration) error {
	var now time.Time
	if err := db.Pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return Classify(err)
	}
	return db.await(ctx, limit, func() (over bool, err error) {
		err = db.Pool.QueryRow(ctx, `
			SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND xact_start <= $1)`, now).Scan(&over)
		return over, err
	})
}

// await calls over until it reports true, or limit has passed.
func (db *DB) await(ctx context.Context, limit time.Duration, over func() (bool, error)) error {
	end := time.Now().Add(limit)
	for wait := time.Millisecond; ; wait = min(2*wait, settledPoll) {
		if done, err := over(); err != nil || done || time.Now().After(end) {
			return Classify(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Package audit checks that every guarantee holds for the rows in Postgres.
package audit

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store audits the rows.
type Store struct {
	db    *pg.DB
	terms *terms.Store
}

// New returns a Store that uses a connection to Postgres.
func New(db *pg.DB, terms *terms.Store) *Store {
	return &Store{db: db, terms: terms}
}

// auditGrace is the delay after which something due counts as forgotten, and the maximum step backwards of a clock.
const auditGrace = 5 * time.Minute

// longAttempt is longer than any lease. An attempt that reached the provider within a window began at most longAttempt
// before the window.
const longAttempt = time.Hour

// forever is the retention of pushes and attempts that are never removed: the longest duration, 292 years.
const forever = time.Duration(math.MaxInt64)

// Pass is one pass of the audit: over everything under way or overdue, and over a range of send times.
// [Store.AuditSince] sets the range for one caller.
//
// The workers share one pass, over the hours of send times that are not closed. An hour is closed when all of its
// pushes ended long enough ago that no worker changes them, and the audit found no violation in it. It is read again
// only if an answer arrives later still. The table audit_pass holds the state of the workers' pass, so that another
// worker can continue it.
type Pass struct {
	store  *Store
	worker uuid.UUID // Nil: the pass of a caller, whose state is not saved
	plan   booking.AuditPlan
	state  auditState
	cuts   []int64 // forced beginnings of chunks; for tests

	reach    *time.Duration // longest reach of all policies, past ones included; nil: not read yet
	planning time.Duration  // planning time of a chunk; 0: no chunk was read yet
	patient  bool           // the next chunk has no time limit
	limit    time.Duration  // of a chunk's snapshot, for tests; 0: chunkTime
}

// CheckNames lists the names of all [Checks].
func (*Store) CheckNames() []string {
	names := make([]string, len(Checks))
	for i, c := range Checks {
		names[i] = c.Name
	}
	return names
}

// Package audit checks that every guarantee holds for the rows in Postgres.
package audit

import (
	"context"
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

// Finding is a violation of a guarantee.
type Finding struct {
	Check     string    `json:"check"` // the name of one of [Checks]
	Tenant    uuid.UUID `json:"tenant"`
	Recipient string    `json:"recipient"`
	Push      uuid.UUID `json:"push"`
	Detail    string    `json:"detail"` // without recipient, address and message
}

// auditGrace is the delay after which something due counts as forgotten, and the maximum step backwards of a clock.
const auditGrace = 5 * time.Minute

// longAttempt is longer than any lease. An attempt that reached the provider within a window began at most longAttempt
// before the window.
const longAttempt = time.Hour

// forever is the retention of pushes and attempts that are never removed: the longest duration, 292 years.
const forever = time.Duration(math.MaxInt64)

// AuditSince begins a pass over everything with a send time since a time (zero: over everything), and over everything
// that waits or is under way. It changes nothing in Postgres and skips no recipient, however long one takes. Each
// chunk has its own snapshot.
func (s *Store) AuditSince(file booking.Terms, kept booking.Kept, since time.Time) *Pass {
	return &Pass{
		store: s, plan: booking.AuditPlan{Policy: booking.OrNone(file), Kept: kept},
		state: auditState{
			AuditResult: booking.AuditResult{Found: map[string]*booking.AuditFinding{}},
			Walk:        walk{Spans: []stretch{{since, farAhead}}, Left: 1, Begun: true, Key: math.MinInt64, Step: firstStep},
		},
	}
}

// Audit runs a pass of [Store.AuditSince] to its end and returns all findings.
func (s *Store) Audit(ctx context.Context, file booking.Terms, since time.Time) (all []Finding, err error) {
	p := s.AuditSince(file, booking.Kept{}, since)
	for err == nil && !p.Over() {
		_, _, err = p.Next(ctx, func(f Finding) { all = append(all, f) })
	}
	return all, err
}

package audit

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// Finding is a broken guarantee.
type Finding struct {
	Check     string    `json:"check"` // the name of one of [Checks]
	Tenant    uuid.UUID `json:"tenant"`
	Recipient string    `json:"recipient"`
	Push      uuid.UUID `json:"push"`
	Detail    string    `json:"detail"` // names no recipient, address or message
}

// auditGrace is how long workers may take before something due counts as forgotten, and how far a clock may have gone
// back.
const auditGrace = 5 * time.Minute

// longAttempt bounds how long before a window an attempt can have begun that the provider had within it: leases are
// shorter.
const longAttempt = time.Hour

// forever is how long pushes and attempts are kept that nothing removes: the longest duration there is, 292 years.
const forever = time.Duration(math.MaxInt64)

// AuditSince begins a pass over what was to be sent, or was sent, since a time, zero: over everything, and over all that waits or
// is under way. It changes nothing in Postgres, and leaves no one out, however long that takes. Each chunk has a snapshot of its own.
func (s *Store) AuditSince(file booking.Terms, kept booking.Kept, since time.Time) *AuditPass {
	return &AuditPass{
		store: s, plan: booking.AuditPlan{Policy: booking.OrNone(file), Kept: kept},
		state: auditState{
			AuditResult: booking.AuditResult{Found: map[string]*booking.AuditFinding{}},
			Walk:        walk{Spans: []stretch{{since, farAhead}}, Left: 1, Begun: true, Key: math.MinInt64, Step: firstStep},
		},
	}
}

// Audit carries such a pass to its end, and returns all broken guarantees.
func (s *Store) Audit(ctx context.Context, file booking.Terms, since time.Time) (all []Finding, err error) {
	p := s.AuditSince(file, booking.Kept{}, since)
	for err == nil && !p.Over() {
		_, _, err = p.Next(ctx, func(f Finding) { all = append(all, f) })
	}
	return all, err
}

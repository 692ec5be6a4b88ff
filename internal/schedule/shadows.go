package schedule

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// The maximum number of counts of shadow rules in memory, overall and per tenant. Tenants choose their categories
// freely; pushes beyond the maximum are not counted.
const (
	mostShadows   = 50_000
	tenantShadows = 1_000
)

// Shadows counts what shadow rules would have refused. A nil Shadows counts nothing.
type Shadows struct {
	countBuffer[booking.ShadowCount]
	now func() time.Time
}

// shadowStore adds counts to the stored ones.
type shadowStore interface {
	AddShadows(ctx context.Context, counts []booking.ShadowCount) error
}

// NewShadows returns an empty counter.
func NewShadows(st shadowStore, log *slog.Logger, now func() time.Time) *Shadows {
	return &Shadows{now: now, countBuffer: countBuffer[booking.ShadowCount]{
		name: "store counts of shadow rules", log: log, most: mostShadows, perTenant: tenantShadows,
		of:    func(c *booking.ShadowCount) (uuid.UUID, *int) { return c.Tenant, &c.Pushes },
		store: st.AddShadows,
	}}
}

// count counts a booked push once for each of the rules.
func (s *Shadows) count(p *push.Push, rules []string) {
	if s == nil {
		return
	}
	minute := s.now().UTC().Truncate(time.Minute)
	counts := make([]booking.ShadowCount, len(rules))
	for i, rule := range rules {
		counts[i] = booking.ShadowCount{Tenant: p.Tenant, Minute: minute, Rule: rule, Category: p.Category, Pushes: 1}
	}
	s.add(counts...)
}

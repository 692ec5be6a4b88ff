package audit

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

const (
	namedFound  = 10   // number of pushes kept for each check
	mostTenants = 1000 // maximum number of tenants with findings of their own
)

// Finding is a violation of a guarantee.
type Finding struct {
	Check     string    `json:"check"` // the name of one of [Checks]
	Tenant    uuid.UUID `json:"tenant"`
	Recipient string    `json:"recipient"`
	Push      uuid.UUID `json:"push"`
	Detail    string    `json:"detail"` // without recipient, address and message
}

// auditState is the progress of a pass.
type auditState struct {
	booking.AuditResult
	Walk  walk
	Since time.Time   // earlier hours are closed in spite of violations
	Open  []time.Time // hours that stay open

	Tenants map[uuid.UUID]map[string]*booking.AuditFinding // findings by tenant and check, of up to mostTenants tenants
	Others  bool                                           // further tenants have findings
}

// add counts a violation, in total and for its tenant.
func (s *auditState) add(f Finding) {
	addTo(s.Found, f)
	switch {
	case s.Tenants[f.Tenant] != nil:
	case len(s.Tenants) == mostTenants:
		s.Others = true
		return
	case s.Tenants == nil:
		s.Tenants = map[uuid.UUID]map[string]*booking.AuditFinding{}
		fallthrough
	default:
		s.Tenants[f.Tenant] = map[string]*booking.AuditFinding{}
	}
	addTo(s.Tenants[f.Tenant], f)
}

// addTo counts a violation in the findings of its check.
func addTo(found map[string]*booking.AuditFinding, f Finding) {
	of := found[f.Check]
	if of == nil {
		of = &booking.AuditFinding{}
		found[f.Check] = of
	}
	if of.Violations++; len(of.Pushes) < namedFound {
		of.Pushes = append(of.Pushes, f.Push)
	}
}

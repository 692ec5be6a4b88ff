package audit

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
)

// auditState is how far a pass is.
type auditState struct {
	booking.AuditResult
	Walk  walk
	Since time.Time   // earlier hours are closed although there are violations
	Open  []time.Time // hours that are not to be closed

	Tenants map[uuid.UUID]map[string]*booking.AuditFinding // what was found of each, up to a number of them
	Others  bool                                           // there are more
}

// add counts a violation, for all and for its tenant.
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

package schedule

import (
	"errors"
	"slices"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/suppression"
)

// observer counts metrics.
type observer interface {
	Submitted(outcome, rule string)
	CacheAnswered(state string)
}

// submitMetrics counts the outcomes of submits.
type submitMetrics struct {
	observer
	rules []string // names of the rules in the operator's file
}

// observe counts the outcome of a submit, unless it only validates.
func (m *submitMetrics) observe(o Options, err error) {
	if o.ValidateOnly {
		return
	}
	if err == nil {
		m.Submitted("accepted", "")
		return
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok { // the usual case
		for _, v := range refusal.Violations {
			m.Submitted("refused", m.ruleLabel(v.Rule.Name))
		}
		return
	}
	var (
		wrong    invalid.FieldErrors
		capped   *booking.Capped
		form     badForm
		gone     *push.GoneError
		unwanted *OptedOut
		stopped  *Suppressed
	)
	switch {
	case errors.As(err, &unwanted):
		m.Submitted("refused", booking.OptedOutReason)
	case errors.As(err, &stopped):
		m.Submitted("refused", suppression.Failed)
	case errors.As(err, &capped):
		m.Submitted("capped", capped.Cap)
	case errors.As(err, &wrong), errors.As(err, &form), errors.Is(err, push.ErrKeyReused), errors.Is(err, ErrOthersRefused), errors.As(err, &gone):
		m.Submitted("invalid", "")
	default:
		m.Submitted("unavailable", "")
	}
}

// ruleLabel returns the name of a rule of the operator's file. For a tenant's rule it returns "own", because tenants
// choose any number of names.
func (m *submitMetrics) ruleLabel(name string) string {
	if slices.Contains(m.rules, name) {
		return name
	}
	return "own"
}

// CountInvalid counts submitted pushes whose form was invalid, so that Submit or SubmitBatch was not called.
func (s *Service) CountInvalid(pushes int) {
	for range pushes {
		s.metrics.Submitted("invalid", "")
	}
}

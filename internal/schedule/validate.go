package schedule

import (
	"errors"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
)

// Validate says all that Submit would find wrong with a request before it asks anybody. Callers that found other faults
// report them together with these.
func (s *Service) Validate(r Request) invalid.FieldErrors {
	var bad invalid.FieldErrors
	if _, err := s.plan(uuid.Nil, r); errors.As(err, &bad) {
		return bad
	}
	return nil
}

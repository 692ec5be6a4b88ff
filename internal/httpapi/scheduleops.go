package httpapi

import (
	"github.com/sendquota/sendquota/internal/recurring"
)

// The group of these operations in the documentation.
const tagSchedules = "Schedules"

// schedules serves schedules and their runs.
type schedules struct {
	svc   *recurring.Service
	forms forms
}

// scheduleOperations returns the operations on schedules.
func scheduleOperations(s *spec, svc *recurring.Service, checks formService) []operation {
	return (&schedules{svc, newForms(checks)}).routes(s)
}

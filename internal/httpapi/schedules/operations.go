package schedules

import (
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Schedules"

// schedules serves schedules and their runs.
type schedules struct {
	svc   *recurring.Service
	forms pushes.Forms
}

// Operations returns the operations on schedules.
func Operations(s *rest.Spec, svc *recurring.Service, checks pushes.FormService) []rest.Operation {
	return (&schedules{svc, pushes.NewForms(checks)}).routes(s)
}

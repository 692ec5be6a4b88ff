package policies

import (
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The group of these operations in the documentation.
const Tag = "Policy"

// policies serves the policies of tenants.
type policies struct{ svc *schedule.Policies }

// Operations returns the operations on policies.
func Operations(s *rest.Spec, svc *schedule.Policies) []rest.Operation {
	return (&policies{svc}).routes(s)
}

package httpapi

import (
	"github.com/sendquota/sendquota/internal/schedule"
)

// The group of these operations in the documentation.
const tagPolicy = "Policy"

// policies serves the policies of tenants.
type policies struct{ svc *schedule.Policies }

// policyOperations returns the operations on policies.
func policyOperations(s *spec, svc *schedule.Policies) []operation {
	return (&policies{svc}).routes(s)
}

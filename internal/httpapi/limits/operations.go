package limits

import (
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Limits"

// limits serves speed limits.
type limits struct{ limiter Limiter }

// Operations returns the operations on speed limits. Without a limiter, they answer 503.
func Operations(s *rest.Spec, l Limiter) []rest.Operation { return (&limits{l}).routes(s) }

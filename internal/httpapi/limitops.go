package httpapi

// The group of these operations in the documentation.
const tagLimits = "Limits"

// limits serves speed limits.
type limits struct{ limiter limiter }

// limitOperations returns the operations on speed limits. Without a limiter, they answer 503.
func limitOperations(s *spec, l limiter) []operation { return (&limits{l}).routes(s) }

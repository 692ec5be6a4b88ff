package push

import "github.com/google/uuid"

// Caller is whoever holds an API key: a tenant, and what the key allows.
type Caller struct {
	Tenant uuid.UUID
	Scopes []string
}

// The scopes of API keys.
const (
	ScopeWrite  = "pushes:write" // submit, cancel, reschedule
	ScopeRead   = "pushes:read"  // read and list pushes
	ScopeQuota  = "quota:read"   // check quotas, see bookings
	ScopeLimits = "limits:take"  // take from speed limits
)

// Scopes lists all scopes; a key made without a choice has them all.
var Scopes = []string{ScopeWrite, ScopeRead, ScopeQuota, ScopeLimits}

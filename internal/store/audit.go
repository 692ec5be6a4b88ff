package store

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/quota"
)

// Finding is a broken guarantee.
type Finding struct {
	Check     string    `json:"check"` // the name of one of [Checks]
	Tenant    uuid.UUID `json:"tenant"`
	Recipient string    `json:"recipient"`
	Push      uuid.UUID `json:"push"`
	Detail    string    `json:"detail"` // names no recipient, address or message
}

// auditGrace is how long workers may take before something due counts as forgotten, and how far a clock may have gone
// back.
const auditGrace = 5 * time.Minute

// longAttempt bounds how long before a window an attempt can have begun that the provider had within it: leases are
// shorter.
const longAttempt = time.Hour

// back is how far before an attempt others of its recipient can matter to it.
const back = ` - @reach::interval - @long::interval`

// auditArgs are the arguments that all queries of an audit may name.
func auditArgs(policy quota.Policy) pgx.NamedArgs {
	args := pgx.NamedArgs{"grace": auditGrace, "long": longAttempt, "reach": policy.Reach()}
	ruleArgs(args, policy)
	return args
}

package store

import (
	"cmp"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
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

// forever is how long pushes and attempts are kept that nothing removes: the longest duration there is, 292 years.
const forever = time.Duration(math.MaxInt64)

// back is how far before an attempt others of its recipient can matter to it.
const back = ` - @reach::interval - @long::interval`

// auditArgs are the arguments that all queries of an audit may name.
func auditArgs(file booking.Terms, kept booking.Kept) pgx.NamedArgs {
	file = booking.OrNone(file)
	args := pgx.NamedArgs{
		"grace": auditGrace, "long": longAttempt, "reach": file.Reach(), "various": !file.Plain(),
		"keep_pushes": cmp.Or(kept.Pushes, forever), "keep_sends": cmp.Or(kept.Sends, forever),
	}
	ruleArgs(args, sameForAll(file))
	return args
}

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Version is a current or former policy of a tenant.
type Version struct {
	Number   int64     // 0: the tenant never had a policy of its own
	At       time.Time // when it was stored
	By       string    // the id of the user or the API key, or the operator's tool
	Document *Document // nil: from then on the policy of the operator's file
}

// Apply is the effect of a policy change on existing bookings.
type Apply string

// The effects on bookings that do not fit into the new policy.
const (
	NewOnly Apply = "new_only" // none: they keep their times
	Reslot  Apply = "reslot"   // each moves to its next free time; without one it is canceled
	Cancel  Apply = "cancel"   // they are canceled
)

// Applies lists all effects, the default first.
var Applies = []Apply{NewOnly, Reslot, Cancel}

// Change is a new version of a tenant's policy.
type Change struct {
	Document *Document // nil: back to the policy of the operator's file
	By       string
	If       []int64 // acceptable current versions; nil: any
	Apply    Apply
}

// Holds reports whether the change may replace the current version.
func (c *Change) Holds(inForce int64) bool { return c.If == nil || slices.Contains(c.If, inForce) }

// StaleError rejects a change because the current version is not the one that it was made for.
type StaleError struct{ InForce int64 }

// Error names the current version.
func (e *StaleError) Error() string {
	return fmt.Sprintf("the policy has changed in between: version %d is in force", e.InForce)
}

// Operation applies a change to existing bookings, in small steps.
type Operation struct {
	ID      uuid.UUID
	Version int64 // of the policy
	Apply   Apply
	Status  OperationStatus

	Looked, Moved, Canceled int // pushes
	Rechecked               int // pushes that a rule had put off, and that are due again
	PutOff                  int `db:"-"` // such pushes when the policy was changed, up to 100,000; only the caller that changed it sees them
	CreatedAt, UpdatedAt    time.Time
	EndedAt                 time.Time // zero: it is running
}

// OperationStatus is the state of an operation.
type OperationStatus string

// The states of an operation.
const (
	Running  OperationStatus = "running"
	Finished OperationStatus = "finished"
	Replaced OperationStatus = "replaced" // the policy has changed again
)

// Forecast is the effect of a policy on scheduled pushes. They are replayed by send time, each against the earlier ones
// that fitted.
type Forecast struct {
	Conflicts int
	ByRule    map[string]int // how many of them each rule forbids
	First     []Conflict     // by send time
}

// Conflict is a push that does not fit into a policy.
type Conflict struct {
	Push   uuid.UUID
	SendAt time.Time
	Rule   string // the first rule that forbids it
}

// ShadowCount is the number of pushes that a shadow rule would have refused.
type ShadowCount struct {
	Rule, Category string
	WouldRefuse    int
}

// MaxShadows is the maximum number of counts in an answer.
const MaxShadows = 10_000

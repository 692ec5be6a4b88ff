package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Version is a policy that a tenant has, or had.
type Version struct {
	Number   int64     // 0: the tenant never had one of its own
	At       time.Time // when it was stored
	By       string    // the id of the user or the API key, or the operator's tool
	Document *Document // nil: that of the operator's file, from then on
}

// Apply says what a change of the policy does with what is booked already.
type Apply string

// What a change can do with bookings that do not fit into the new policy.
const (
	NewOnly Apply = "new_only" // nothing: they keep their times
	Reslot  Apply = "reslot"   // each moves to its next free time, and without one it is canceled
	Cancel  Apply = "cancel"   // they are canceled
)

// Applies lists all that a change can do, the default first.
var Applies = []Apply{NewOnly, Reslot, Cancel}

// Change is a new version of a tenant's policy.
type Change struct {
	Document *Document // nil: back to that of the operator's file
	By       string
	If       []int64 // the version in force must be one of these; nil: any
	Apply    Apply
}

// Holds reports whether the version in force is one that the change may replace.
func (c *Change) Holds(inForce int64) bool { return c.If == nil || slices.Contains(c.If, inForce) }

// StaleError says that the version in force is another one than a change was made for.
type StaleError struct{ InForce int64 }

// Error says which one is in force.
func (e *StaleError) Error() string {
	return fmt.Sprintf("the policy has changed meanwhile: version %d is in force", e.InForce)
}

// Operation carries a change on to what is booked already, in small steps.
type Operation struct {
	ID      uuid.UUID
	Version int64 // of the policy
	Apply   Apply
	Status  OperationStatus

	Looked, Moved, Canceled int // pushes
	Rechecked               int // pushes that a rule had put off, and that are due again
	PutOff                  int `db:"-"` // such pushes when the policy was changed, up to 100,000; known to who changed it alone
	CreatedAt, UpdatedAt    time.Time
	EndedAt                 time.Time // zero: it goes on
}

// OperationStatus says whether an operation goes on.
type OperationStatus string

// The states of an operation.
const (
	Running  OperationStatus = "running"
	Finished OperationStatus = "finished"
	Replaced OperationStatus = "replaced" // the policy has changed again
)

// Forecast says what a policy would do to what is booked: to the pushes that wait for a later time, replayed in the order of
// their send times, each against those that fitted before it.
type Forecast struct {
	Conflicts int
	ByRule    map[string]int // how many of them each rule forbids
	First     []Conflict     // by send time
}

// Conflict is a push that does not fit into a policy.
type Conflict struct {
	Push   uuid.UUID
	SendAt time.Time
	Rule   string // the first one that forbids it
}

// ShadowCount is how many pushes a shadow rule would have refused.
type ShadowCount struct {
	Rule, Category string
	WouldRefuse    int
}

// MaxShadows is how many counts are told at once, at most.
const MaxShadows = 10_000

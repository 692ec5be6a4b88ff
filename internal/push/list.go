package push

import (
	"time"

	"github.com/google/uuid"
)

// Filter chooses among a tenant's pushes. Zero fields choose all.
type Filter struct {
	Recipient, Channel, Category string
	Reason                       string // why the last attempt failed, or why the push ended
	Status                       Status
	Campaign                     uuid.UUID
	From, Until                  time.Time // From ≤ send time < Until
}

// Position is a place in a list of pushes: behind the push with this send time and id.
type Position struct {
	SendAt time.Time
	ID     uuid.UUID
}

// Page is a part of a list of pushes. Next is where the next part begins; nil: this is the last one.
type Page struct {
	Pushes []Push
	Next   *Position
}

package push

import (
	"time"

	"github.com/google/uuid"
)

// Filter selects pushes of a tenant. Zero fields select all.
type Filter struct {
	Recipient, Channel, Category string
	Reason                       string // why the last attempt failed, or why the push ended
	Status                       Status
	Campaign                     uuid.UUID
	From, Until                  time.Time // From ≤ send time < Until
}

// Position is a position in a list of pushes: after the push with this send time and id.
type Position struct {
	SendAt time.Time
	ID     uuid.UUID
}

// Page is a page of pushes. Next is where the next page begins; nil: this is the last one.
type Page struct {
	Pushes []Push
	Next   *Position
}

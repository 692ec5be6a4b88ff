package quota

import (
	"time"

	"github.com/google/uuid"
)

// Rule allows at most Limit bookings in any half-open window of length Window. A Limit of 0 blocks every time.
type Rule struct {
	Name   string
	Limit  int
	Window time.Duration
}

// Policy is a set of rules that must all hold. The empty policy limits nothing.
type Policy []Rule

// Booking is a place held in a recipient's quota.
type Booking struct {
	ID uuid.UUID
	At time.Time
}

// Reach is how far from a time a booking can matter to it: the longest window.
func (p Policy) Reach() time.Duration {
	var reach time.Duration
	for _, r := range p {
		reach = max(reach, r.Window)
	}
	return reach
}

package push

import (
	"time"

	"github.com/google/uuid"
)

// FailureQuery asks for the pushes that have failed or expired, by their send times.
type FailureQuery struct {
	Channel     string    // empty: of all
	Campaign    uuid.UUID // zero: of all, and of none
	From, Until time.Time // From ≤ send time < Until
}

// FailureGroup counts the pushes that have ended in the same way, for the same reason, on the same channel.
type FailureGroup struct {
	Status            Status // [Failed] or [Expired]
	Channel, Reason   string
	Pushes            int
	First, Last       time.Time // of their send times
	PossiblyDelivered int       // of them
	Retried, Retries  int       // of them, those that were retried, and those that are retries themselves
}

// Failures are the groups, the largest first.
type Failures struct {
	Groups []FailureGroup
	Since  time.Time // all with a send time from then on were looked at
}

// Add adds the pushes of a group of the same kind.
func (g *FailureGroup) Add(other FailureGroup) {
	g.Pushes += other.Pushes
	g.PossiblyDelivered += other.PossiblyDelivered
	g.Retried += other.Retried
	g.Retries += other.Retries
	if other.First.Before(g.First) {
		g.First = other.First
	}
	if other.Last.After(g.Last) {
		g.Last = other.Last
	}
}

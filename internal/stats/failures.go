package stats

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// FailureQuery selects pushes that have failed or expired, by send time.
type FailureQuery struct {
	Channel     string    // "": all
	Campaign    uuid.UUID // zero: all, also pushes of no campaign
	From, Until time.Time // From ≤ send time < Until
}

// FailureGroup counts the pushes that have ended in the same way, for the same reason, on the same channel.
type FailureGroup struct {
	Status            push.Status // [push.Failed] or [push.Expired]
	Channel, Reason   string
	Pushes            int
	First, Last       time.Time // the first and the last send time
	PossiblyDelivered int       // how many may have been delivered
	Retried, Retries  int       // how many were retried, and how many are retries themselves
}

// Failures are the groups, the largest first.
type Failures struct {
	Groups []FailureGroup
	Since  time.Time // all pushes with a send time from then on were read
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

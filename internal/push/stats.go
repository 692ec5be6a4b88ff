package push

import (
	"time"

	"github.com/google/uuid"
)

// StatsBy is what the numbers of a tenant are grouped by.
type StatsBy string

// The ways to group numbers.
const (
	ByHour     StatsBy = "hour"
	ByDay      StatsBy = "day"
	ByChannel  StatsBy = "channel"
	ByCategory StatsBy = "category"
	ByCampaign StatsBy = "campaign"
	ByRule     StatsBy = "rule"
)

// Stat are the numbers of a group.
type Stat struct {
	At       time.Time // of groups by hour or day: when it began
	Key      string    // of the others; empty: of pushes without one
	Accepted int64
	Deferred int64 // of the accepted ones
	Refused  int64
	Sent     int64
	Failed   int64
	Expired  int64
	Canceled int64
	Late     Lateness // of the sent ones
}

// Submitted is how many were submitted.
func (s *Stat) Submitted() int64 { return s.Accepted + s.Refused }

// StatsQuery asks for the numbers of the hours of UTC that begin from one time on and before another.
type StatsQuery struct {
	By          StatsBy
	From, Until time.Time // whole hours
}

// Stats are the groups, in the order of their times or keys, as of a moment.
type Stats struct {
	Groups []Stat
	AsOf   time.Time
	Cut    bool // there are more groups than are returned
}

// RefusedCount is how many pushes of a kind were refused in an hour: all of them, or those by one rule.
type RefusedCount struct {
	Tenant            uuid.UUID
	Hour              time.Time // of UTC
	Channel, Category string
	Campaign          uuid.UUID
	Rule              string // empty: all of them
	Pushes            int
}

// AheadQuery asks for what is booked for the hours of UTC that begin from one time on and before another.
type AheadQuery struct {
	From, Until       time.Time // whole hours
	By                StatsBy   // [ByHour] or [ByDay]
	Split             StatsBy   // [ByChannel], [ByCategory] or [ByCampaign]: of what the parts of each hour or day are; "": there are none
	Channel, Category string    // empty: all
	Campaign          uuid.UUID // zero: all
}

// AheadCount is how many pushes wait for a send time in an hour or a day.
type AheadCount struct {
	At     time.Time // when it begins
	Pushes int64
	Parts  []AheadPart // the largest ones, that first
}

// MostParts is how many parts of an hour or a day are told apart.
const MostParts = 10

// AheadPart is how many of these pushes have the same channel, category or campaign.
type AheadPart struct {
	Key    string // empty: those without one
	Pushes int64
}

package stats

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// By is the dimension that statistics are grouped by.
type By string

// The dimensions.
const (
	ByHour     By = "hour"
	ByDay      By = "day"
	ByChannel  By = "channel"
	ByCategory By = "category"
	ByLevel    By = "level"
	ByCampaign By = "campaign"
	ByRule     By = "rule"
)

// Group holds the numbers of one group.
type Group struct {
	At       time.Time // for groups by hour or day: its start
	Key      string    // for other groups; "": pushes without one
	Accepted int64
	Deferred int64 // part of Accepted
	Refused  int64
	Sent     int64
	Segments int64 // of the text messages among the sent ones
	Failed   int64
	Expired  int64
	Canceled int64
	Late     Lateness // of the sent ones
}

// Submitted returns the number of submitted pushes.
func (s *Group) Submitted() int64 { return s.Accepted + s.Refused }

// Query selects the hours of UTC that begin in [From, Until).
type Query struct {
	By          By
	From, Until time.Time // whole hours
}

// Report are the groups, sorted by time or key, as of a moment.
type Report struct {
	Groups []Group
	AsOf   time.Time
	Cut    bool // some groups were left out
}

// RefusedCount is the number of pushes of a kind that were refused in an hour, in total or by one rule.
type RefusedCount struct {
	Tenant            uuid.UUID
	Hour              time.Time // in UTC
	Channel, Category string
	Level             push.Level
	Campaign          uuid.UUID
	Rule              string // "": in total
	Pushes            int
}

// AheadQuery selects the pushes booked for the hours of UTC that begin in [From, Until).
type AheadQuery struct {
	From, Until       time.Time // whole hours
	By                By        // [ByHour] or [ByDay]
	Split             By        // [ByChannel], [ByCategory] or [ByCampaign]: the dimension of the parts; "": no parts
	Channel, Category string    // "": all
	Campaign          uuid.UUID // zero: all
}

// AheadCount is the number of pushes scheduled in an hour or a day.
type AheadCount struct {
	At     time.Time // its start
	Pushes int64
	Parts  []AheadPart // the largest ones, in descending order
}

// MostParts is the maximum number of parts of an hour or a day.
const MostParts = 10

// AheadPart is the number of these pushes with one channel, category or campaign.
type AheadPart struct {
	Key    string // "": those without one
	Pushes int64
}

// Flow is the progress of a tenant's pushes: the waiting ones, and the outcomes of the last hour's attempts.
type Flow struct {
	AsOf    time.Time
	Waiting int       // pushes that are due and not being sent
	Oldest  time.Time // their earliest send time; zero: none waits
	PutOff  int       // pushes whose send time has passed, put off by a rule
	Stopped int       // due pushes that a pause of sending holds
	Workers int       // workers with a recent report, for all tenants

	Since    time.Time    // attempts that began from then on are counted
	Minutes  []FlowMinute // minutes with attempts, by time
	All      FlowMinute   // the sum of all minutes
	Complete bool         // all waiting pushes, and the attempts of a whole hour, were counted
}

// FlowMinute counts the attempts that began in a minute, or in several.
type FlowMinute struct {
	At               time.Time // the start of the minute
	Attempts         map[push.Outcome]int
	LateP50, LateP99 time.Duration // of delivered pushes: from the promised send time to the provider's answer
}

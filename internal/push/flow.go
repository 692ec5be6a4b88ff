package push

import "time"

// Flow is the progress of a tenant's pushes: the waiting ones, and the outcomes of the last hour's attempts.
type Flow struct {
	AsOf    time.Time
	Waiting int       // pushes that are due and not being sent
	Oldest  time.Time // their earliest send time; zero: none waits
	PutOff  int       // pushes whose send time has passed, put off by a rule
	Workers int       // workers with a recent report, for all tenants

	Since    time.Time    // attempts that began from then on are counted
	Minutes  []FlowMinute // minutes with attempts, by time
	All      FlowMinute   // the sum of all minutes
	Complete bool         // all waiting pushes, and the attempts of a whole hour, were counted
}

// FlowMinute counts the attempts that began in a minute, or in several.
type FlowMinute struct {
	At               time.Time // the start of the minute
	Attempts         map[Outcome]int
	LateP50, LateP99 time.Duration // of delivered pushes: from the promised send time to the provider's answer
}

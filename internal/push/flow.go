package push

import "time"

// Flow is how the pushes of a tenant get on: what waits, and how the attempts of the last hour ended.
type Flow struct {
	AsOf    time.Time
	Waiting int       // pushes that are due, and are not being sent
	Oldest  time.Time // the earliest send time of these; zero: none waits
	PutOff  int       // pushes whose send time has come, and that a rule has put off
	Workers int       // of all tenants, that have told of themselves of late

	Since    time.Time    // the attempts that began from then on are counted
	Minutes  []FlowMinute // those with attempts, in the order of time
	All      FlowMinute   // all of them together
	Complete bool         // whether all that waits was counted, and the attempts of a whole hour
}

// FlowMinute counts attempts that began in a minute, or in several.
type FlowMinute struct {
	At               time.Time // when the minute began
	Attempts         map[Outcome]int
	LateP50, LateP99 time.Duration // of the delivered ones: from the promised send time until the provider had answered
}

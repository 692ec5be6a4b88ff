package push

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// ChannelState is the state of a channel: working, held, or with too many bad outcomes.
type ChannelState string

// The states of a channel, from the best to the worst.
const (
	ChannelWorking   ChannelState = "working"
	ChannelTrying    ChannelState = "trying"    // a few at a time, after a pause
	ChannelPaused    ChannelState = "paused"    // no attempts; the provider asked for a pause
	ChannelRejecting ChannelState = "rejecting" // too many attempts are refused permanently: see ChannelOutcomes.State
	ChannelFailing   ChannelState = "failing"   // no attempts; too many in a row found the provider down
)

// ChannelStates lists the states of channels, from the best to the worst.
var ChannelStates = []ChannelState{ChannelWorking, ChannelTrying, ChannelPaused, ChannelRejecting, ChannelFailing}

// Worse reports whether a state is worse than another one. The empty state is the best.
func (s ChannelState) Worse(than ChannelState) bool {
	return slices.Index(ChannelStates, s) > slices.Index(ChannelStates, than)
}

// ChannelView is one worker's view of a channel, or of one tenant's pushes in it.
type ChannelView struct {
	Channel string
	Tenant  uuid.UUID // the tenant that is held; Nil: the view concerns all tenants
	State   ChannelState
	Held    time.Duration // the remaining pause
}

// The rule that turns outcomes into a state.
const (
	OutcomesSpan = 5 * time.Minute // the period of the outcomes
	MinAttempts  = 20              // with fewer outcomes, the channel counts as working
	PoorShare    = 5               // one in PoorShare may be refused permanently, or fail
)

// ChannelOutcomes counts how a tenant's attempts through a channel ended.
type ChannelOutcomes struct {
	Tenant   uuid.UUID
	Channel  string
	Attempts int
	Rejected int // refused permanently, not because of one address alone
	Failed   int // provider down, no answer, or refused temporarily; neither because of one address alone nor with a pause
}

// State returns [ChannelFailing] if more than a fifth of at least twenty attempts failed, [ChannelRejecting] if more
// than a fifth were refused permanently, and else [ChannelWorking].
func (o ChannelOutcomes) State() ChannelState {
	switch {
	case o.Attempts < MinAttempts:
	case o.Failed*PoorShare > o.Attempts:
		return ChannelFailing
	case o.Rejected*PoorShare > o.Attempts:
		return ChannelRejecting
	}
	return ChannelWorking
}

// UnhealthyChannel is a channel that has become unhealthy for a tenant.
type UnhealthyChannel struct {
	ChannelOutcomes
	State ChannelState // ChannelRejecting or ChannelFailing
}

// ChannelRates are the outcomes of all tenants' attempts through a channel in [OutcomesSpan].
type ChannelRates struct {
	Attempts, Rejected int
	Tenants            int // the tenants that it is rejecting
}

// ChannelHealth is the workers' view of a channel, and the tenant's pushes in it.
type ChannelHealth struct {
	State    ChannelState // the worst state that a worker reports, or ChannelRejecting; "": no recent report
	Until    time.Time    // when the last pause ends; zero: no worker pauses
	AsOf     time.Time    // the time of the last report of that state; zero: no recent report
	Waiting  int          // the tenant's pushes that are due and not being sent
	Attempts map[Outcome]int
	Recent   ChannelOutcomes // the tenant's, in OutcomesSpan
}

// ChannelReport is the health of the channels, by name, for one tenant.
type ChannelReport struct {
	Channels map[string]*ChannelHealth
	Complete bool // all waiting pushes and all attempts were counted
}

// Of returns the health of a channel and adds it if it is missing.
func (r *ChannelReport) Of(channel string) *ChannelHealth {
	if r.Channels[channel] == nil {
		r.Channels[channel] = &ChannelHealth{Attempts: map[Outcome]int{}}
	}
	return r.Channels[channel]
}

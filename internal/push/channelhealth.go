package push

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// ChannelState says whether attempts are made through a channel, and how they end.
type ChannelState string

// The states of a channel, from the best to the worst.
const (
	ChannelWorking   ChannelState = "working"
	ChannelTrying    ChannelState = "trying"    // a few at a time, after a pause
	ChannelPaused    ChannelState = "paused"    // not now, because the provider asked for a pause
	ChannelRejecting ChannelState = "rejecting" // they are made, and too many are refused permanently: see ChannelOutcomes.State
	ChannelFailing   ChannelState = "failing"   // not now, because too many in a row have found the provider down
)

// ChannelStates lists the states of channels, from the best to the worst.
var ChannelStates = []ChannelState{ChannelWorking, ChannelTrying, ChannelPaused, ChannelRejecting, ChannelFailing}

// Worse reports whether a state is worse than another one. No state is better than any.
func (s ChannelState) Worse(than ChannelState) bool {
	return slices.Index(ChannelStates, s) > slices.Index(ChannelStates, than)
}

// ChannelView is what one worker sees of a channel, or of one tenant's pushes there.
type ChannelView struct {
	Channel string
	Tenant  uuid.UUID // that is held; Nil: the view is of the channel, for all tenants
	State   ChannelState
	Held    time.Duration // how much longer it pauses
}

// The rule by which outcomes are judged.
const (
	OutcomesSpan = 5 * time.Minute // in which outcomes count
	FewestJudged = 20              // outcomes; of fewer nothing is said
	PoorShare    = 5               // one in so many may be refused permanently, or fail
)

// ChannelOutcomes counts how attempts of a tenant through a channel ended.
type ChannelOutcomes struct {
	Tenant   uuid.UUID
	Channel  string
	Attempts int
	Rejected int // refused permanently, not because of one address alone
	Failed   int // found the provider down, got no answer, or were refused for now, not because of one address alone or with a pause
}

// State is what the outcomes say of a channel: [ChannelFailing] if more than a fifth of at least twenty attempts failed,
// [ChannelRejecting] if so many were refused permanently, and else [ChannelWorking].
func (o ChannelOutcomes) State() ChannelState {
	switch {
	case o.Attempts < FewestJudged:
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

// ChannelRates is the outcomes of all tenants' attempts through a channel in [OutcomesSpan].
type ChannelRates struct {
	Attempts, Rejected int
	Tenants            int // for which it is rejecting
}

// ChannelHealth is what the workers see of a channel, and what a tenant has there.
type ChannelHealth struct {
	State    ChannelState // the worst that a worker sees, or ChannelRejecting; "": no worker has told of late
	Until    time.Time    // when the last of their pauses ends; zero: none pauses
	AsOf     time.Time    // when a worker last saw it so; zero: no worker has told of late
	Waiting  int          // the tenant's pushes that are due, and are not being sent
	Attempts map[Outcome]int
	Recent   ChannelOutcomes // of the tenant, in OutcomesSpan
}

// ChannelReport is the health of the channels by their names, for one tenant.
type ChannelReport struct {
	Channels map[string]*ChannelHealth
	Complete bool // whether all that waits, and all attempts, were counted
}

// Of is the health of a channel, to be filled in.
func (r *ChannelReport) Of(channel string) *ChannelHealth {
	if r.Channels[channel] == nil {
		r.Channels[channel] = &ChannelHealth{Attempts: map[Outcome]int{}}
	}
	return r.Channels[channel]
}

package push

import (
	"time"

	"github.com/google/uuid"
)

// ChannelState says whether attempts are made through a channel.
type ChannelState string

// The states of a channel, from the best to the worst.
const (
	ChannelWorking ChannelState = "working"
	ChannelTrying  ChannelState = "trying"  // a few at a time, after a pause
	ChannelPaused  ChannelState = "paused"  // not now, because the provider asked for a pause
	ChannelFailing ChannelState = "failing" // not now, because too many in a row have found the provider down
)

// ChannelStates lists the states of channels, from the best to the worst.
var ChannelStates = []ChannelState{ChannelWorking, ChannelTrying, ChannelPaused, ChannelFailing}

// ChannelView is what one worker sees of a channel, or of one tenant's pushes there.
type ChannelView struct {
	Channel string
	Tenant  uuid.UUID // that is held; Nil: the view is of the channel, for all tenants
	State   ChannelState
	Held    time.Duration // how much longer it pauses
}

// ChannelHealth is what the workers see of a channel, and what a tenant has there.
type ChannelHealth struct {
	State    ChannelState // the worst that a worker sees; "": no worker has told of late
	Until    time.Time    // when the last of their pauses ends; zero: none pauses
	AsOf     time.Time    // when a worker last saw it so; zero: no worker has told of late
	Waiting  int          // the tenant's pushes that are due, and are not being sent
	Attempts map[Outcome]int
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

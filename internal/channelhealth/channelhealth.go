package channelhealth

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
)

// State is the state of a channel: working, held, or with too many bad outcomes.
type State string

// The states of a channel, from the best to the worst.
const (
	Working   State = "working"
	Trying    State = "trying"    // a few at a time, after a pause
	Paused    State = "paused"    // no attempts; the provider asked for a pause
	Rejecting State = "rejecting" // too many attempts are refused permanently: see Outcomes.State
	Failing   State = "failing"   // no attempts; too many in a row found the provider down
)

// States lists the states of channels, from the best to the worst.
var States = []State{Working, Trying, Paused, Rejecting, Failing}

// Worse reports whether a state is worse than another one. The empty state is the best.
func (s State) Worse(than State) bool {
	return slices.Index(States, s) > slices.Index(States, than)
}

// OwnChannel returns the name, in views, outcomes and reports, of a channel that its tenant has made. It differs from all names
// of the operator's. Without a name, it stands for all channels of tenants.
func OwnChannel(name string) string { return "*" + name }

// View is one worker's view of a channel, or of one tenant's pushes in it.
type View struct {
	Channel string
	Tenant  uuid.UUID // the tenant that is held; Nil: the view concerns all tenants
	State   State
	Held    time.Duration // the remaining pause
}

// The rule that turns outcomes into a state.
const (
	OutcomesSpan = 5 * time.Minute // the period of the outcomes
	MinAttempts  = 20              // with fewer outcomes, the channel counts as working
	PoorShare    = 5               // one in PoorShare may be refused permanently, or fail
)

// Outcomes counts how a tenant's attempts through a channel ended.
type Outcomes struct {
	Tenant   uuid.UUID
	Channel  string
	Attempts int
	Rejected int // refused permanently, not because of one address alone
	Failed   int // provider down, no answer, or refused temporarily; neither because of one address alone nor with a pause
}

// State returns [Failing] if more than a fifth of at least twenty attempts failed, [Rejecting] if more
// than a fifth were refused permanently, and else [Working].
func (o Outcomes) State() State {
	switch {
	case o.Attempts < MinAttempts:
	case o.Failed*PoorShare > o.Attempts:
		return Failing
	case o.Rejected*PoorShare > o.Attempts:
		return Rejecting
	}
	return Working
}

// Unhealthy is a channel that has become unhealthy for a tenant.
type Unhealthy struct {
	Outcomes
	State State // Rejecting or Failing
}

// Rates are the outcomes of all tenants' attempts through a channel in [OutcomesSpan].
type Rates struct {
	Attempts, Rejected int
	Tenants            int // the tenants that it is rejecting
}

// Health is the workers' view of a channel, and the tenant's pushes in it.
type Health struct {
	State    State                     // the worst state that a worker reports, or Rejecting; "": no recent report
	Until    time.Time                 // when the last pause ends; zero: no worker pauses
	AsOf     time.Time                 // the time of the last report of that state; zero: no recent report
	Waiting  [len(push.Levels)]Backlog // the tenant's pushes that are due and not being sent, by level; without the tenant
	Stopped  [len(push.Levels)]int     // the tenant's due pushes that a pause of sending holds, by level; Waiting lacks them
	Attempts map[push.Outcome]int
	Recent   Outcomes // the tenant's, in OutcomesSpan
}

// Waits returns the number of the tenant's pushes that are due and not being sent.
func (h *Health) Waits() (n int) {
	for _, b := range h.Waiting {
		n += b.Waiting
	}
	return n
}

// Stops returns the number of the tenant's due pushes that a pause of sending holds.
func (h *Health) Stops() (n int) {
	for _, level := range h.Stopped {
		n += level
	}
	return n
}

// Report is the health of the channels, by name, for one tenant.
type Report struct {
	Channels map[string]*Health
	Pauses   pause.List // of whole channels or of everything, by the tenant or the operator
	Complete bool       // all waiting pushes and all attempts were counted
}

// StoppedBy returns the pause that stops all sending through a channel at a time; nil: none does.
func (r *Report) StoppedBy(channel string, now time.Time) *pause.Pause {
	var p push.Push
	p.Channel = channel
	return r.Pauses.Over(&p, now)
}

// Of returns the health of a channel and adds it if it is missing.
func (r *Report) Of(channel string) *Health {
	if r.Channels[channel] == nil {
		r.Channels[channel] = &Health{Attempts: map[push.Outcome]int{}}
	}
	return r.Channels[channel]
}

// Seen returns what is known of a channel. It does not change the report, which requests may share.
func (r *Report) Seen(channel string) Health {
	if h := r.Channels[channel]; h != nil {
		return *h
	}
	return Health{}
}

// SeenOwn returns what is known of a channel that the tenant has made. Its attempts, and pushes that were booked for the
// operator's channel of that name, are counted by the name.
func (r *Report) SeenOwn(name string) Health {
	h, named := r.Seen(OwnChannel(name)), r.Seen(name)
	if all := r.Seen(OwnChannel("")); h.State == "" {
		h.State, h.Until, h.AsOf = all.State, all.Until, all.AsOf
		if h.State != "" && h.Recent.State().Worse(h.State) {
			h.State = h.Recent.State()
		}
	}
	h.Attempts = named.Attempts
	for i, b := range named.Waiting {
		w := &h.Waiting[i]
		if w.Waiting += b.Waiting; w.Oldest.IsZero() || !b.Oldest.IsZero() && b.Oldest.Before(w.Oldest) {
			w.Oldest = b.Oldest
		}
		w.Level = push.Levels[i]
		h.Stopped[i] += named.Stopped[i]
	}
	return h
}

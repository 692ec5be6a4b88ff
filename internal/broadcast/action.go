package broadcast

import "fmt"

// Action is an action on a campaign as a whole.
type Action string

// The actions.
const (
	Start  Action = "start"
	Pause  Action = "pause"
	Resume Action = "resume"
	Cancel Action = "cancel"
)

// acts lists, by action, the states it may start from, and the states that it has led to.
var acts = map[Action]struct{ from, done []Status }{
	Start:  {[]Status{Draft}, []Status{Starting, Running}},
	Pause:  {[]Status{Starting, Running}, []Status{Pausing, Paused}},
	Resume: {[]Status{Pausing, Paused}, []Status{Starting, Running}},
	Cancel: {
		[]Status{Starting, Running, Pausing, Paused}, []Status{Canceling, Canceled},
	},
}

// On returns the state that an action leads to, or the current state if the action is already done. The error is a
// [*StateError].
func (a Action) On(c Campaign) (Status, error) {
	act := acts[a]
	for _, s := range act.done {
		if c.Status == s {
			return s, nil
		}
	}
	for _, s := range act.from {
		if c.Status == s {
			return a.leads(c)
		}
	}
	return c.Status, &StateError{Campaign: c, Detail: fmt.Sprintf("the campaign is %s; it cannot %s", c.Status, a.passive())}
}

// leads returns the state that an action leads to.
func (a Action) leads(c Campaign) (Status, error) {
	switch a {
	case Start:
		if c.Size == 0 {
			return c.Status, &StateError{Campaign: c, Detail: "the campaign has no audience; upload one first"}
		}
		return Starting, nil
	case Pause:
		return Pausing, nil
	case Cancel:
		return Canceling, nil
	}
	if c.Progress.Pending > 0 {
		return Starting, nil
	}
	return Running, nil
}

func (a Action) passive() string {
	return map[Action]string{
		Start: "be started", Pause: "be paused", Resume: "be resumed", Cancel: "be canceled",
	}[a]
}

// Over reports whether the state is final.
func (s Status) Over() bool { return s == Canceled || s == Finished }

package system

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// pausedWords describes a channel whose sending is stopped.
const pausedWords = "Sending is stopped. Messages that are due wait until it is resumed."

// mostStops is the maximum number of pauses that the summary names.
const mostStops = 3

// Summary is the state of everything in words, and whether that is well. Pauses of sending come first.
func (v *nowView) Summary() summary {
	state := v.state()
	if len(v.Stopped) == 0 {
		return state
	}
	var names []string
	for _, one := range v.Stopped[:min(len(v.Stopped), mostStops)] {
		names = append(names, frame.PauseWords(one))
	}
	if more := len(v.Stopped) - mostStops; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	all := slices.ContainsFunc(v.Stopped, func(p client.Pause) bool { return p.Scope == client.PauseScopeAll })
	stopped := summary{"paused", "Sending is stopped: " + strings.Join(names, ", ") + "."}
	switch {
	case all:
		stopped.Sentence = "Sending is stopped: everything."
	case state.Look == "ok":
		stopped.Sentence += " Everything else is sending normally."
	}
	if state.Look == "open" || state.Look != "ok" && !all {
		stopped = summary{state.Look, stopped.Sentence + " " + state.Sentence}
	}
	return stopped
}

// DueNow is the number of messages that are due and are not being sent, for any reason but a limit.
func (v *nowView) DueNow() int64 { return v.Waiting.Pushes + v.Waiting.Paused }

package delivery

import (
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// breaker keeps attempts away from a provider that is down, and comes back to it gently.
//
// After ten attempts in a row that found the provider down it opens: there are no attempts for a pause. What a
// provider refuses of one push, or does not take for now, is no such attempt: it works. Then it tries again, with one
// attempt, two, four and so on, until it trusts the provider. The first attempt of these that fails makes it pause
// again, for twice as long. A provider that asks for a pause gets it, and is tried again in the same way.
//
// Each tenant has a breaker, and so has the channel: see [holds].
type breaker struct {
	first, longest time.Duration // pause

	failures int           // in a row, while it is closed
	pause    time.Duration // the last one
	until    time.Time     // when the pause ends
	asked    bool          // the provider asked for it
	trial    int           // attempts at a time while it tries again; 0: it is closed
}

const (
	failuresToOpen = 10
	trialsToClose  = 64
)

// room is how many attempts may be under way at a time, of at most so many, or else how long it is until there may be
// one.
func (b *breaker) room(now time.Time, most int) (attempts int, wait time.Duration) {
	switch {
	case now.Before(b.until):
		return 0, b.until.Sub(now)
	case b.trial > 0:
		return min(b.trial, most), 0
	}
	return most, 0
}

// closed reports whether attempts are made as if there were no breaker.
func (b *breaker) closed() bool { return b.trial == 0 }

// ended takes note of an attempt. What began before a pause tells nothing new. Trouble that is not confirmed opens
// nothing.
func (b *breaker) ended(trouble, confirmed bool, now time.Time) {
	switch {
	case now.Before(b.until):
	case trouble && b.trial > 0:
		if confirmed {
			b.open(now, min(2*b.pause, b.longest))
		}
	case trouble:
		if b.failures++; confirmed && b.failures >= failuresToOpen {
			b.open(now, b.first)
		}
	default:
		b.failures = 0
		if b.trial *= 2; b.trial > trialsToClose {
			b.trial, b.pause = 0, 0
		}
	}
}

func (b *breaker) open(now time.Time, pause time.Duration) {
	b.pause = max(pause, b.first)
	b.stop(now.Add(b.pause), false)
}

// hold makes a pause until then, for which the provider asked, if none is longer.
func (b *breaker) hold(until time.Time) { b.stop(until, true) }

func (b *breaker) stop(until time.Time, asked bool) {
	b.failures, b.trial = 0, 1
	if until.After(b.until) {
		b.until, b.asked = until, asked
	}
}

// state is how the channel is.
func (b *breaker) state(now time.Time) push.ChannelState {
	switch {
	case now.Before(b.until) && b.asked:
		return push.ChannelPaused
	case now.Before(b.until):
		return push.ChannelFailing
	case b.trial > 0:
		return push.ChannelTrying
	}
	return push.ChannelWorking
}

package delivery

import (
	"time"

	"github.com/sendquota/sendquota/internal/channelhealth"
)

// breaker keeps attempts away from a provider that is down, and resumes them gradually.
//
// After ten consecutive attempts that found the provider down it opens: there are no attempts for a pause. An attempt
// does not count as such if the provider refuses the push, or does not take it for now, because then the provider
// works. After the pause, the breaker tries one attempt, two, four and so on, until it trusts the provider. The first
// failure among these makes it pause again, for twice as long. A provider that asks for a pause gets it, and is then
// tried in the same way.
//
// Each tenant has a breaker, and so has the channel: see [holds].
type breaker struct {
	first, longest time.Duration // pause

	failures int           // consecutive, while it is closed
	pause    time.Duration // the last one
	until    time.Time     // end of the pause
	asked    bool          // the provider asked for it
	trial    int           // concurrent attempts while it tries again; 0: closed
}

const (
	failuresToOpen = 10
	trialsToClose  = 64
)

// room returns the number of attempts that may run concurrently, up to most, or else the wait until one may run.
func (b *breaker) room(now time.Time, most int) (attempts int, wait time.Duration) {
	switch {
	case now.Before(b.until):
		return 0, b.until.Sub(now)
	case b.trial > 0:
		return min(b.trial, most), 0
	}
	return most, 0
}

// closed reports whether attempts are unlimited.
func (b *breaker) closed() bool { return b.trial == 0 }

// ended records the result of an attempt. During a pause, results of earlier attempts are ignored. Trouble that is not
// confirmed does not open the breaker.
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

// hold pauses until a time because the provider asked for it, unless a longer pause is running.
func (b *breaker) hold(until time.Time) { b.stop(until, true) }

func (b *breaker) stop(until time.Time, asked bool) {
	b.failures, b.trial = 0, 1
	if until.After(b.until) {
		b.until, b.asked = until, asked
	}
}

// state returns the state of the channel.
func (b *breaker) state(now time.Time) channelhealth.State {
	switch {
	case now.Before(b.until) && b.asked:
		return channelhealth.Paused
	case now.Before(b.until):
		return channelhealth.Failing
	case b.trial > 0:
		return channelhealth.Trying
	}
	return channelhealth.Working
}

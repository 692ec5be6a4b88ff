package push

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Retry is the retry policy of a channel.
type Retry struct {
	MaxAttempts   int           // at least 1
	First, Max    time.Duration // the backoff doubles from First up to Max
	FailOnUnknown bool          // give up rather than risk a second delivery
}

// Attempt is the result of an attempt.
type Attempt struct {
	Number     int // 1 for the first
	Outcome    Outcome
	Final      bool          // refused permanently: trying again is pointless
	RetryAfter time.Duration // the wait that the provider asked for; 0 if none
	Error      string
}

// Resolution is the new state of a push after an attempt.
type Resolution struct {
	Status Status        // Sent, Failed or Scheduled
	Delay  time.Duration // until the next attempt, for Scheduled
	Reason string        // why, for Failed and Scheduled
}

// After returns the new state of a push after an attempt, given the time left until it expires. seed spreads the
// retries of different pushes: the same seed and attempt always give the same delay.
func (r Retry) After(a Attempt, left time.Duration, seed []byte) Resolution {
	delay := max(r.backoff(a.Number, seed), a.RetryAfter)
	switch {
	case a.Outcome == Delivered:
		return Resolution{Status: Sent}
	case a.Outcome == Refused && a.Final:
		return Resolution{Status: Failed, Reason: a.Error}
	case a.Outcome == Unknown && r.FailOnUnknown:
		return Resolution{Status: Failed, Reason: "outcome unknown, and on_unknown is fail: " + a.Error}
	case a.Number >= r.MaxAttempts:
		return Resolution{Status: Failed, Reason: fmt.Sprintf("gave up after %s: %s", attempts(a.Number), a.Error)}
	case delay >= left:
		return Resolution{Status: Failed, Reason: "no time for another attempt before it expires: " + a.Error}
	}
	return Resolution{Status: Scheduled, Delay: delay, Reason: a.Error}
}

// backoff doubles from First to Max and takes off up to a fifth.
func (r Retry) backoff(attempt int, seed []byte) time.Duration {
	d := r.First
	for i := 1; i < attempt && d < r.Max; i++ {
		d *= 2
	}
	d = min(d, r.Max)
	return d - Spread(d, seed, attempt)
}

// Spread returns a part of a pause, up to a fifth. Shortening pauses by it keeps pushes that failed together from
// coming back together. The same seed and attempt always give the same part.
func Spread(pause time.Duration, seed []byte, attempt int) time.Duration {
	h := fnv.New32a()
	h.Write(seed)
	h.Write([]byte{byte(attempt)})
	return time.Duration(float64(pause) * 0.2 * float64(h.Sum32()) / (1 << 32))
}

// attempts returns a number of attempts in words.
func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

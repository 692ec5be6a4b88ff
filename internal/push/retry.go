package push

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Retry says how a channel tries again.
type Retry struct {
	MaxAttempts   int           // at least 1
	First, Max    time.Duration // the backoff doubles from First up to Max
	FailOnUnknown bool          // give up rather than risk a second delivery
}

// Attempt is what is known when an attempt ends.
type Attempt struct {
	Number     int // 1 for the first
	Outcome    Outcome
	Final      bool          // refused for good: trying again is pointless
	RetryAfter time.Duration // the provider asked to wait so long; 0 if it did not
	Error      string
}

// Resolution is what becomes of a push after an attempt.
type Resolution struct {
	Status Status        // Sent, Failed or Scheduled
	Delay  time.Duration // until the next attempt, for Scheduled
	Reason string        // why, for Failed and Scheduled
}

// After decides what becomes of a push after an attempt, when left remains of its time to live. The push's seed
// spreads the retries of many pushes: the same seed and attempt always give the same delay.
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

// Spread is a part of a pause, up to a fifth, by which to change it, so that what failed together does not come back
// together. The same seed and attempt always give the same.
func Spread(pause time.Duration, seed []byte, attempt int) time.Duration {
	h := fnv.New32a()
	h.Write(seed)
	h.Write([]byte{byte(attempt)})
	return time.Duration(float64(pause) * 0.2 * float64(h.Sum32()) / (1 << 32))
}

// attempts is a number of them in words.
func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/testenv"
)

// pauseTakes is the time from the answer to a pause until no attempt begins any more.
const pauseTakes = 2 * time.Second

// pausedSpan is a time while all sending was paused: from the answer to the pause until the request to end it.
type pausedSpan struct{ from, until time.Time }

// ofPause reports whether a point is on the way of pauses.
func ofPause(p failpoint.Point) bool { return strings.HasPrefix(string(p), "pause.") }

// stopSending pauses all sending. The returned function ends the pause.
func (b *bundle) stopSending() (resume func()) {
	c := b.newCaller()
	a, _ := c.insist(b.Context(), "POST", "/v1/pauses", "", object{"scope": "all", "reason": "chaos"})
	if a.status != 200 && a.status != 201 {
		b.Fatalf("pause: %d %s", a.status, a.body.Type)
	}
	span := pausedSpan{from: time.Now()}
	return func() {
		span.until = time.Now()
		b.paused = append(b.paused, span)
		if a, _ := c.insist(b.Context(), "DELETE", "/v1/pauses/"+a.body.ID, "", nil); a.status != 204 && a.status != 404 { // 404: its answer was lost
			b.Fatalf("resume: %d %s", a.status, a.body.Type)
		}
	}
}

// pausesHold checks I10: from two seconds after the answer to a pause, no attempt begins in it.
func (j *findings) pausesHold() {
	for _, span := range j.facts.paused {
		for id, sends := range j.facts.sends {
			for _, s := range sends {
				if s.Started.After(span.from.Add(pauseTakes)) && s.Started.Before(span.until) {
					j.broken("I10", "attempt %d of push %s began at %s, although sending was paused from %s to %s", s.Attempt, id, stamp(s.Started), stamp(span.from), stamp(span.until))
				}
			}
		}
	}
}

// stoppedSending makes pushes due while all sending is paused.
func stoppedSending(b *bundle, c *caller) {
	b.startWorker(nil)
	resume := b.stopSending()
	now := time.Now().Truncate(time.Second)
	for i := range 20 {
		c.submit(b.Context(), fmt.Sprint("r-", i), "", "", now.Add(4*time.Second))
	}
	testenv.Sleep(b, 7*time.Second) // two until the pause is in force, and a few after they are due
	resume()
}

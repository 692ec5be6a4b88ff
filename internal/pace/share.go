package pace

import (
	"math/rand/v2"
	"time"
)

// crowd is what a worker knows of all that are at work.
type crowd struct {
	workers int       // how many there are
	place   float64   // of this one among them: a part of the time in which each has one slot of its share
	seen    time.Time // when it was so
	guess   bool      // it never reached Redis
	clock   reading
}

// reading is what Redis' clock was at a time, give or take doubt.
type reading struct {
	at, clock time.Time
	doubt     time.Duration
}

// strangers are the workers at work, by the guess of one that never reached Redis.
const strangers = 10

// stranger knows of nobody. It has its place by chance.
func stranger() crowd {
	now := time.Now()
	return crowd{workers: strangers, place: rand.Float64(), seen: now, guess: true, clock: reading{at: now, clock: now}}
}

// meet takes note of how many workers there are. That they have become fewer is
// believed after a while only: Redis may have forgotten some. Of readings of its
// clock that of the quickest answer counts, for as long.
func (p *Pacer) meet(c crowd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.among; known.guess || c.workers >= known.workers || c.seen.Sub(known.seen) > presence {
		if last := known.clock; !known.guess && last.doubt < c.clock.doubt && c.seen.Sub(last.at) < presence {
			c.clock = last
		}
		p.among = c
	}
}

// longest is how long anybody may have to wait for a slot that was taken from
// Redis: each other worker waits for its own.
func (c crowd) longest(s Speed) time.Duration {
	return time.Duration(c.workers) * (s.Every + together)
}

// next is when the next slot of this worker's share is, at a time or after it. The
// slots of all shares have twice the distance of the channel's own, and take
// turns, by Redis' clock as each worker remembers it.
func (c crowd) next(s Speed, t time.Time) time.Time {
	turn := 2 * time.Duration(c.workers) * s.Every
	mine := time.Duration(c.place * float64(turn))
	clock := time.Duration(c.clock.clock.Add(t.Sub(c.clock.at)).UnixNano() % int64(turn))
	return t.Add((mine - clock + turn) % turn)
}

// share takes the next slot of this worker's own share, unless Redis is asked
// again before.
func (p *Pacer) share(channel string, s Speed, left time.Duration) (slots int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.health.awayFor() < max(doubt, p.among.longest(s)) {
		return 0, max(left, time.Millisecond)
	}
	after := now
	if last, ok := p.shares[channel]; ok && !last.Before(now) {
		after = last.Add(s.Every) // it is taken
	}
	slot := p.among.next(s, after)
	if wait = slot.Sub(now); wait > left {
		return 0, max(left, time.Millisecond)
	}
	p.shares[channel] = slot
	return 1, wait
}

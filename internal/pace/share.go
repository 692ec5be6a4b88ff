package pace

import (
	"math/rand/v2"
	"time"
)

// peers is a worker's knowledge of all workers.
type peers struct {
	workers  int       // their number
	position float64   // position of this one among them, from 0 to 1: where its slot lies in a turn of all shares
	at       time.Time // when this was known
	guess    bool      // this worker never reached Redis
	clock    reading
}

// reading is Redis' clock at a time, give or take doubt.
type reading struct {
	at, clock time.Time
	doubt     time.Duration
}

// guessed is the assumed number of workers for one that never reached Redis. Its position is random.
const guessed = 10

func guessedPeers() peers {
	now := time.Now()
	return peers{workers: guessed, position: rand.Float64(), at: now, guess: true, clock: reading{at: now, clock: now}}
}

// meet updates the number of workers. It accepts a smaller number only after presence, because Redis may have forgotten
// some. For the same time, it keeps the clock reading of the quickest answer.
func (p *Pacer) meet(c peers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.among; known.guess || c.workers >= known.workers || c.at.Sub(known.at) > presence {
		if last := known.clock; !known.guess && last.doubt < c.clock.doubt && c.at.Sub(last.at) < presence {
			c.clock = last
		}
		p.among = c
	}
}

// longest returns how long a worker may have to wait for a slot that it took in Redis: every worker waits for one.
func (c peers) longest(s Speed) time.Duration {
	return time.Duration(c.workers) * (s.Every*time.Duration(max(s.Most, 1)) + together)
}

// turn returns the distance between the slots of a worker's share.
func (c peers) turn(s Speed) time.Duration { return 2 * time.Duration(c.workers) * s.Every }

// next returns the time of the next slot of this worker's share, at a time or after it. The slots of all shares have
// twice the distance of the channel's own, and take turns, by Redis' clock as each worker remembers it.
func (c peers) next(s Speed, t time.Time) time.Time {
	turn := c.turn(s)
	mine := time.Duration(c.position * float64(turn))
	clock := time.Duration(c.clock.clock.Add(t.Sub(c.clock.at)).UnixNano() % int64(turn))
	return t.Add((mine - clock + turn) % turn)
}

// share takes the next slot of this worker's own share, unless Redis is asked again before.
func (p *Pacer) share(o Order, left time.Duration) Slots {
	channel, s := o.Channel, o.Speed
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.health.awayFor() < max(doubt, p.among.longest(s)) {
		return Slots{Wait: max(left, time.Millisecond)}
	}
	if owed := p.owed[channel]; owed > 0 {
		p.skip(channel, s, owed)
		delete(p.owed, channel)
	}
	after := now
	if last, ok := p.shares[channel]; ok && !last.Before(now) {
		after = last.Add(s.Every) // it is taken
	}
	slot := p.among.next(s, after)
	wait := slot.Sub(now)
	if wait > left {
		return Slots{Wait: max(left, time.Millisecond)}
	}
	p.shares[channel], p.sharing[channel] = slot.Add(time.Duration(max(o.Each, 1)-1)*p.among.turn(s)), true
	return Slots{Taken: 1, Wait: wait}
}

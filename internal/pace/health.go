package pace

import "time"

// health is what a worker knows of how Redis is. What follows from it is at the
// same time so for all workers, although none knows of the others: shares are
// used only while nobody gets slots from Redis.
//
// Redis is lost for a worker when an exchange with it fails, and has been away for
// as long as lies between that exchange and the last that failed. Its share is
// used only when Redis has been away for so long that every other worker has found
// out, too, and has used up what it had taken from Redis before; and only until
// Redis is asked again. When it answers, slots are taken from it only after all
// others have asked again, too.
type health struct {
	since     time.Time // when the first exchange began that failed; zero: the last one did not
	failed    time.Time // when the last exchange began that failed
	worked    time.Time // when the last exchange began that did not fail
	restUntil time.Time // until then Redis is left alone
	quiet     time.Time // until then no slots are taken
}

const (
	rest  = time.Second            // how long Redis is left alone from the beginning of an exchange that failed
	doubt = 500 * time.Millisecond // the same, of the first: whoever watches finds out in this time
	quiet = 2 * rest               // how long nobody takes slots when Redis is back: others leave it alone for rest
)

// leaveAlone is how long Redis is left alone for now.
func (p *Pacer) leaveAlone() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.redis.restUntil), time.Until(p.redis.quiet))
}

// fail takes note of an exchange that failed.
func (p *Pacer) fail(sent time.Time, err error) {
	p.mu.Lock()
	h := &p.redis
	alone := rest
	if h.since.IsZero() {
		h.since, alone = sent, doubt
	}
	h.failed, h.restUntil = sent, sent.Add(alone)
	p.mu.Unlock()
	p.failed(err)
}

// well takes note of an exchange that did not fail, and returns for how long no
// slots must be taken. If Redis was away for less than doubt, nobody uses a share.
func (p *Pacer) well(sent time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, now := &p.redis, time.Now()
	if !h.since.IsZero() && now.Sub(h.worked) >= doubt {
		h.quiet = now.Add(quiet)
	}
	h.since, h.restUntil, h.worked = time.Time{}, time.Time{}, sent
	return time.Until(h.quiet)
}

// awayFor is for how long Redis has been away, surely.
func (h health) awayFor() time.Duration {
	if h.since.IsZero() {
		return 0
	}
	return h.failed.Sub(h.since)
}

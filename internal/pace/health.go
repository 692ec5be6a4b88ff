package pace

import (
	"context"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/redisscript"
)

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
	since  time.Time // when the first exchange began that failed; zero: the last one did not
	failed time.Time // when the last exchange began that failed
	worked time.Time // when the last exchange began that did not fail
	quiet  time.Time // until then no slots are taken
}

const (
	doubt = 500 * time.Millisecond // the cooldown after the first exchange that failed: whoever watches finds out in this time
	rest  = time.Second            // the cooldown after each of the next
	quiet = 2 * rest               // how long nobody takes slots when Redis is back: longer than a time-out and a cooldown
)

// prefix is that of all keys. Without it Redis is as good as lost.
func (p *Pacer) prefix() (string, error) {
	prefix, err := p.redis.Prefix()
	if err != nil {
		p.redis.Fail(err)
		p.lost(time.Now())
	}
	return prefix, err
}

// ask runs scripts, and takes note of how Redis is.
func (p *Pacer) ask(ctx context.Context, calls ...redisscript.Call) ([][]int64, error) {
	sent := time.Now()
	answers, err := p.redis.RunAll(ctx, calls...)
	switch {
	case err == nil:
		p.well(sent)
	case ctx.Err() == nil && !errors.Is(err, redisscript.ErrDown):
		p.lost(sent)
	}
	return answers, err
}

// lost takes note of an exchange that failed.
func (p *Pacer) lost(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health.since.IsZero() {
		p.health.since = sent
	}
	p.health.failed = sent
}

// well takes note of an exchange that did not fail. If Redis was away for less than
// doubt, nobody uses a share.
func (p *Pacer) well(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, now := &p.health, time.Now()
	if !h.since.IsZero() && now.Sub(h.worked) >= doubt {
		h.quiet = now.Add(quiet)
	}
	h.since, h.worked = time.Time{}, sent
}

// left is for how long no slots may be asked for: Redis is left alone, or was so a moment ago.
func (p *Pacer) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.redis.Left(), time.Until(p.health.quiet), 0)
}

// awayFor is for how long Redis has been away, surely.
func (h health) awayFor() time.Duration {
	if h.since.IsZero() {
		return 0
	}
	return h.failed.Sub(h.since)
}

package pace

import (
	"context"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/redisscript"
)

// health is what a worker knows of Redis. All workers follow the same rules, so that no worker uses its share while
// another gets slots: a share is used only when Redis has been away for so long that every other worker has found out,
// too, and has used up its slots; and only until Redis is asked again. When Redis answers, no slots are taken until
// every other worker has asked again, too.
type health struct {
	since  time.Time // beginning of the first exchange that failed; zero: the last one worked
	failed time.Time // beginning of the last exchange that failed
	worked time.Time // beginning of the last exchange that worked
	quiet  time.Time // until then no slots are taken
}

const (
	doubt = 500 * time.Millisecond // cooldown after the first exchange that failed: every worker that watches finds out in this time
	rest  = time.Second            // cooldown after each of the next
	quiet = 2 * rest               // without slots when Redis is back: longer than a time-out and a cooldown
)

// prefix begins all keys. Without it, Redis counts as lost.
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

// well takes note of an exchange that worked. If Redis was away for less than doubt, no worker uses its share.
func (p *Pacer) well(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, now := &p.health, time.Now()
	if !h.since.IsZero() && now.Sub(h.worked) >= doubt {
		h.quiet = now.Add(quiet)
	}
	h.since, h.worked = time.Time{}, sent
}

// quietFor is how long no slots are taken, because Redis is back.
func (p *Pacer) quietFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.health.quiet), 0)
}

// awayFor is how long Redis has been away at least.
func (h health) awayFor() time.Duration {
	if h.since.IsZero() {
		return 0
	}
	return h.failed.Sub(h.since)
}

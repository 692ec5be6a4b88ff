package pace

import (
	"context"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/redisscript"
)

// health is a worker's knowledge of Redis. All workers follow the same rules, so that no worker uses its share while
// another gets slots. A worker uses its share once Redis has been away long enough that every other worker has found
// out, too, and has used up its slots; and only until it asks Redis again. When Redis answers, a worker takes no slots
// until every other worker has asked again, too.
type health struct {
	since  time.Time // beginning of the first failed exchange; zero: the last one worked
	failed time.Time // beginning of the last failed exchange
	worked time.Time // beginning of the last successful exchange
	quiet  time.Time // no slots are taken until then
}

const (
	doubt = 500 * time.Millisecond // cooldown after the first failed exchange: every worker that watches finds out in this time
	rest  = time.Second            // cooldown after each of the next
	quiet = 2 * rest               // without slots when Redis is back: longer than a time-out and a cooldown
)

// prefix returns the beginning of all keys. Without it, Redis counts as lost.
func (p *Pacer) prefix() (string, error) {
	prefix, err := p.redis.Prefix()
	if err != nil {
		p.redis.Fail(err)
		p.lost(time.Now())
	}
	return prefix, err
}

// ask runs scripts, and updates the health of Redis.
func (p *Pacer) ask(ctx context.Context, calls ...redisscript.Call) ([][]int64, error) {
	sent := time.Now()
	answers, err := p.redis.RunAll(ctx, calls...)
	switch {
	case err == nil:
		p.found(sent)
	case ctx.Err() == nil && !errors.Is(err, redisscript.ErrDown):
		p.lost(sent)
	}
	return answers, err
}

// lost records a failed exchange.
func (p *Pacer) lost(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.health.since.IsZero() {
		p.health.since = sent
	}
	p.health.failed = sent
}

// found records a successful exchange. If Redis was away for less than doubt, no worker uses its share.
func (p *Pacer) found(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, now := &p.health, time.Now()
	if !h.since.IsZero() && now.Sub(h.worked) >= doubt {
		h.quiet = now.Add(quiet)
	}
	h.since, h.worked = time.Time{}, sent
}

// quietFor returns how long no slots are taken, because Redis is back.
func (p *Pacer) quietFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.health.quiet), 0)
}

// awayFor returns how long Redis has been away at least.
func (h health) awayFor() time.Duration {
	if h.since.IsZero() {
		return 0
	}
	return h.failed.Sub(h.since)
}

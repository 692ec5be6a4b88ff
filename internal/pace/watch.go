package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/loop"
)

const (
	watchInterval = 200 * time.Millisecond
	presence      = time.Minute // how long a worker that is not heard of counts as one
)

var errUnnamed = errors.New("pace: Postgres has not yet said what its keys are called")

// Pause has all workers leave a channel alone for so long, or for as long as
// somebody asked before, if that is longer. Without Redis it does nothing:
// whoever was asked to pause does so in any case.
func (p *Pacer) Pause(ctx context.Context, channel string, d time.Duration) {
	sent := time.Now()
	prefix, named := p.owner.Prefix()
	if !named || sent.Before(p.resting()) || d < time.Millisecond {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := pauseScript.Run(ctx, p.rdb, []string{pauseKey(prefix, channel)}, d.Milliseconds()).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		p.fail(sent, fmt.Errorf("pause channel %s: %w", channel, err))
	}
}

func pauseKey(prefix, channel string) string { return prefix + "pace:{" + channel + "}:pause" }

func workersKey(prefix string) string { return prefix + "pace:workers" }

// resting is until when Redis is left alone because it failed.
func (p *Pacer) resting() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.redis.restUntil
}

// Run tells paused of every channel that is to be left alone, and for how much
// longer, and says that this worker is there, until ctx ends.
func (p *Pacer) Run(ctx context.Context, channels []string, paused func(channel string, left time.Duration)) error {
	defer p.leave(ctx)
	return loop.Loop{Interval: watchInterval, Pass: func(ctx context.Context) (full bool, err error) {
		if sent := time.Now(); sent.After(p.resting()) {
			if err := p.watch(ctx, channels, paused); err == nil {
				p.well(sent)
			} else if ctx.Err() == nil {
				p.fail(sent, fmt.Errorf("watch channels: %w", err)) // which has been logged then
			}
		}
		return false, nil
	}}.Run(ctx)
}

// watch is one look.
func (p *Pacer) watch(ctx context.Context, channels []string, paused func(string, time.Duration)) error {
	prefix, named := p.owner.Prefix()
	if !named {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pipe := p.rdb.Pipeline()
	sent := time.Now()
	workers := presenceScript.Eval(ctx, pipe, []string{workersKey(prefix)}, p.worker, presence.Milliseconds())
	left := make([]*redis.Cmd, len(channels))
	for i, c := range channels {
		left[i] = pausedScript.Eval(ctx, pipe, []string{pauseKey(prefix, c)})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	seen, err := workers.Int64Slice()
	if err != nil {
		return err
	}
	count, before := max(seen[0], 1), seen[1]
	doubt := time.Since(sent) / 2
	at := sent.Add(doubt)
	p.meet(crowd{workers: int(count), place: float64(before) / float64(count), seen: at, clock: reading{at: at, clock: time.UnixMicro(seen[2]), doubt: doubt}})
	for i, c := range channels {
		if ms, _ := left[i].Int64(); ms > 0 {
			paused(c, time.Duration(ms)*time.Millisecond)
		}
	}
	return nil
}

// leave says that this worker is gone.
func (p *Pacer) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if prefix, named := p.owner.Prefix(); named {
		_ = p.rdb.ZRem(ctx, workersKey(prefix), p.worker).Err() // else it is forgotten within a minute
	}
}

package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	watchInterval = 200 * time.Millisecond
	presence      = time.Minute // how long a worker that is not heard of counts as one

	workersKey = "sq:pace:workers"
)

// Pause has all workers leave a channel alone for so long, or for as long as
// somebody asked before, if that is longer. Without Redis it does nothing:
// whoever was asked to pause does so in any case.
func (p *Pacer) Pause(ctx context.Context, channel string, d time.Duration) {
	if time.Now().Before(p.resting()) || d < time.Millisecond {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := pauseScript.Run(ctx, p.rdb, []string{pauseKey(channel)}, d.Milliseconds()).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		p.fail(fmt.Errorf("pause channel %s: %w", channel, err))
	}
}

func pauseKey(channel string) string { return "sq:pace:{" + channel + "}:pause" }

// Run tells paused of every channel that is to be left alone, and for how much
// longer, and says that this worker is there, until ctx ends.
func (p *Pacer) Run(ctx context.Context, channels []string, paused func(channel string, left time.Duration)) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		if time.Now().After(p.resting()) {
			if err := p.watch(ctx, channels, paused); err != nil && ctx.Err() == nil {
				p.fail(fmt.Errorf("watch channels: %w", err))
			}
		}
		select {
		case <-ctx.Done():
			return p.leave(ctx)
		case <-ticker.C:
		}
	}
}

// watch is one look.
func (p *Pacer) watch(ctx context.Context, channels []string, paused func(string, time.Duration)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pipe := p.rdb.Pipeline()
	workers := presenceScript.Eval(ctx, pipe, []string{workersKey}, p.worker, presence.Milliseconds())
	left := make([]*redis.DurationCmd, len(channels))
	for i, c := range channels {
		left[i] = pipe.PTTL(ctx, pauseKey(c))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	seen, err := workers.Int()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.workers = max(seen, 1)
	p.mu.Unlock()
	for i, c := range channels {
		if left[i].Val() > 0 {
			paused(c, left[i].Val())
		}
	}
	return nil
}

// leave says that this worker is gone.
func (p *Pacer) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = p.rdb.ZRem(ctx, workersKey, p.worker).Err() // else it is forgotten within a minute
	return nil
}

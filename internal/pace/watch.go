package pace

import (
	"context"
	"maps"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/redisscript"
)

const (
	watchInterval = 200 * time.Millisecond
	presence      = time.Minute // a worker counts for so long after it was last heard of
)

// Pause stops a channel at all workers for so long, or until the end of an earlier pause, if that is later. The caller
// pauses in any case. While Redis does not answer, the others are not told; [Pacer.Run] tells them when it does.
func (p *Pacer) Pause(ctx context.Context, channel string, d time.Duration) {
	p.mu.Lock()
	if until := time.Now().Add(d); until.After(p.untold[channel]) {
		p.untold[channel] = until
	}
	p.mu.Unlock()
	p.tell(ctx)
}

// tell tells Redis of the pauses that it does not know yet.
func (p *Pacer) tell(ctx context.Context) {
	prefix, err := p.redis.Prefix()
	if err != nil {
		return
	}
	p.mu.Lock()
	maps.DeleteFunc(p.untold, func(_ string, until time.Time) bool { return time.Until(until) < time.Millisecond })
	told := maps.Clone(p.untold)
	p.mu.Unlock()
	var calls []redisscript.Call
	for channel, until := range told {
		calls = append(calls, pauseScript.Call([]string{pauseKey(prefix, channel)}, time.Until(until).Milliseconds()))
	}
	if len(calls) == 0 {
		return
	}
	if _, err := p.ask(ctx, calls...); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.untold, func(channel string, until time.Time) bool { return until.Equal(told[channel]) })
}

func pauseKey(prefix, channel string) string { return prefix + "pace:{" + channel + "}:pause" }

func workersKey(prefix string) string { return prefix + "pace:workers" }

// Run calls paused for every channel that is paused, with the time that is left, tells other workers of pauses that Redis
// has missed, and keeps this worker among those that Redis counts, until ctx ends.
func (p *Pacer) Run(ctx context.Context, channels []string, paused func(channel string, left time.Duration)) error {
	defer p.leave(ctx)
	return loop.Loop{Interval: watchInterval, Pass: func(ctx context.Context) (full bool, err error) {
		if p.redis.Left() == 0 {
			p.tell(ctx)
			p.watch(ctx, channels, paused)
		}
		return false, nil
	}}.Run(ctx)
}

func (p *Pacer) watch(ctx context.Context, channels []string, paused func(string, time.Duration)) {
	prefix, err := p.prefix()
	if err != nil {
		return
	}
	calls := []redisscript.Call{presenceScript.Call([]string{workersKey(prefix)}, p.worker, presence.Milliseconds())}
	for _, c := range channels {
		calls = append(calls, pausedScript.Call([]string{pauseKey(prefix, c)}))
	}
	sent := time.Now()
	answers, err := p.ask(ctx, calls...)
	if err != nil {
		return
	}
	count, before := max(answers[0][0], 1), answers[0][1]
	doubt := time.Since(sent) / 2
	at := sent.Add(doubt)
	p.meet(peers{workers: int(count), place: float64(before) / float64(count), at: at, clock: reading{at: at, clock: time.UnixMicro(answers[0][2]), doubt: doubt}})
	for i, c := range channels {
		if ms := answers[i+1][0]; ms > 0 {
			paused(c, time.Duration(ms)*time.Millisecond)
		}
	}
}

// leave takes this worker off the list. Without Redis it is forgotten within a minute.
func (p *Pacer) leave(ctx context.Context) {
	if prefix, err := p.redis.Prefix(); err == nil {
		_ = p.redis.Pipeline(context.WithoutCancel(ctx), func(ctx context.Context, pipe redis.Pipeliner) {
			pipe.ZRem(ctx, workersKey(prefix), p.worker)
		})
	}
}

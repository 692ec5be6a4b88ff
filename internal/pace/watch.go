package pace

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/redisscript"
)

const (
	watchInterval = 200 * time.Millisecond
	presence      = time.Minute // a worker counts for this time after it was last heard of
)

// pausing is a tenant whose pushes through a channel pause.
type pausing struct {
	channel string
	tenant  uuid.UUID
}

// Pause pauses a tenant's pushes through a channel at all workers for d, or until the end of an earlier pause, if that
// is later. The caller pauses in any case. While Redis does not answer, the other workers do not learn of it;
// [Pacer.Run] publishes the pause later.
func (p *Pacer) Pause(ctx context.Context, channel string, tenant uuid.UUID, d time.Duration) {
	p.mu.Lock()
	if until, who := time.Now().Add(d), (pausing{channel, tenant}); until.After(p.unpublished[who]) {
		p.unpublished[who] = until
	}
	p.mu.Unlock()
	p.publish(ctx)
}

// publish sends Redis the pauses that it does not know yet.
func (p *Pacer) publish(ctx context.Context) {
	prefix, err := p.redis.Prefix()
	if err != nil {
		return
	}
	p.mu.Lock()
	maps.DeleteFunc(p.unpublished, func(_ pausing, until time.Time) bool { return time.Until(until) < time.Millisecond })
	sentPauses := maps.Clone(p.unpublished)
	p.mu.Unlock()
	var calls []redisscript.Call
	for who, until := range sentPauses {
		calls = append(calls, pauseScript.Call([]string{pauseKey(prefix, who.channel)}, tenantField(who.tenant), time.Until(until).Milliseconds(), mostPausing))
	}
	if len(calls) == 0 {
		return
	}
	if _, err := p.ask(ctx, calls...); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.unpublished, func(who pausing, until time.Time) bool { return until.Equal(sentPauses[who]) })
}

// mostPausing bounds the tenants that pause at all workers, for each channel: two of them already pause the channel.
const mostPausing = 1000

// tenantField names a tenant by two integers, because scripts answer integers only.
func tenantField(tenant uuid.UUID) string {
	return fmt.Sprintf("%d:%d", int64(binary.BigEndian.Uint64(tenant[:8])), int64(binary.BigEndian.Uint64(tenant[8:])))
}

func tenantOf(high, low int64) (tenant uuid.UUID) {
	binary.BigEndian.PutUint64(tenant[:8], uint64(high))
	binary.BigEndian.PutUint64(tenant[8:], uint64(low))
	return tenant
}

func pauseKey(prefix, channel string) string { return prefix + "pace:{" + channel + "}:pause" }

func workersKey(prefix string) string { return prefix + "pace:workers" }

// Run calls paused for every tenant that pauses at a channel, with the remaining time, publishes pauses that Redis has
// missed, and keeps this worker among those that Redis counts, until ctx ends.
func (p *Pacer) Run(ctx context.Context, channels []string, paused func(channel string, tenant uuid.UUID, left time.Duration)) error {
	defer p.leave(ctx)
	return loop.Loop{Interval: watchInterval, Pass: func(ctx context.Context) (full bool, err error) {
		if p.redis.Left() == 0 {
			p.publish(ctx)
			p.watch(ctx, channels, paused)
		}
		return false, nil
	}}.Run(ctx)
}

func (p *Pacer) watch(ctx context.Context, channels []string, paused func(string, uuid.UUID, time.Duration)) {
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
	p.meet(peers{workers: int(count), position: float64(before) / float64(count), at: at, clock: reading{at: at, clock: time.UnixMicro(answers[0][2]), doubt: doubt}})
	for i, c := range channels {
		for one := range slices.Chunk(answers[i+1], 3) {
			paused(c, tenantOf(one[0], one[1]), time.Duration(one[2])*time.Millisecond)
		}
	}
}

// leave removes this worker. Without Redis it is forgotten within a minute.
func (p *Pacer) leave(ctx context.Context) {
	if prefix, err := p.redis.Prefix(); err == nil {
		_ = p.redis.Pipeline(context.WithoutCancel(ctx), func(ctx context.Context, pipe redis.Pipeliner) {
			pipe.ZRem(ctx, workersKey(prefix), p.worker)
		})
	}
}

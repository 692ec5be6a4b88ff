package pace

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Speed is what a provider can take: one attempt every so often, and so many at
// once after a rest.
type Speed struct {
	Every time.Duration // zero: any speed
	Burst int           // at least 1
}

// PerSpan returns the speed of so many attempts in a time span, evenly spaced
// but for the burst.
func PerSpan(rate int, span time.Duration, burst int) Speed {
	micros := (span.Microseconds() + int64(rate) - 1) / int64(rate)
	return Speed{Every: max(time.Duration(micros), 1) * time.Microsecond, Burst: max(burst, 1)}
}

// Pacer hands out slots. It is safe for concurrent use.
type Pacer struct {
	rdb    redis.UniversalClient
	worker string // names this worker among all
	failed func(error)

	mu        sync.Mutex
	workers   int                  // that were at work when Redis was last asked; 0: it never answered
	downUntil time.Time            // until then Redis is left alone
	shares    map[string]time.Time // when each channel's last slot of this worker's own share is, or was
}

const (
	// Slots this close to each other are taken together: it saves asking, and is
	// too short for any provider to notice.
	together = 5 * time.Millisecond
	most     = 100

	timeout = 250 * time.Millisecond // for one exchange with Redis
	rest    = time.Second            // how long Redis is left alone after a failure

	unknownWorkers = 10 // at work, by the guess of one that never reached Redis
)

var (
	//go:embed slots.lua
	slotsSource string
	//go:embed pause.lua
	pauseSource string
	//go:embed presence.lua
	presenceSource string

	slotsScript    = redis.NewScript(slotsSource)
	pauseScript    = redis.NewScript(pauseSource)
	presenceScript = redis.NewScript(presenceSource)
)

// New returns a pacer for a worker, whose name must be its own. It tells failed
// of every failure of Redis.
func New(rdb redis.UniversalClient, worker string, failed func(error)) *Pacer {
	return &Pacer{rdb: rdb, worker: worker, failed: failed, shares: map[string]time.Time{}}
}

// Take takes up to so many of a channel's next slots, and returns how long it is
// until the first; all may be used then. Where it takes none, it is to be asked
// again after that time. It never fails: without Redis it takes the next slot of
// this worker's share.
func (p *Pacer) Take(ctx context.Context, channel string, s Speed, wanted int) (slots int, wait time.Duration) {
	if now := time.Now(); now.After(p.resting()) {
		slots, wait, err := p.take(ctx, channel, s, wanted)
		if err == nil {
			return slots, max(wait, p.used(channel).Add(s.Every).Sub(now))
		}
		p.fail(fmt.Errorf("take slots of channel %s: %w", channel, err))
	}
	return p.share(channel, s, time.Now())
}

func (p *Pacer) take(ctx context.Context, channel string, s Speed, wanted int) (int, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	key := fmt.Sprintf("sq:pace:{%s}:%d:%d", channel, s.Every.Microseconds(), s.Burst)
	answer, err := slotsScript.Run(ctx, p.rdb, []string{key}, s.Every.Microseconds(), s.Burst, min(wanted, most), together.Microseconds()).Int64Slice()
	if err != nil {
		return 0, 0, err
	}
	return int(answer[0]), time.Duration(answer[1]) * time.Microsecond, nil
}

// share takes the next slot of this worker's own share, unless that is so far
// away that Redis may be back before.
func (p *Pacer) share(channel string, s Speed, now time.Time) (slots int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	workers := p.workers
	if workers == 0 {
		workers = unknownWorkers
	}
	every := 2 * time.Duration(workers) * s.Every
	last, known := p.shares[channel]
	if !known { // the first slot is one of the channel's intervals away: after whatever was sent last
		last = now.Add(s.Every - every)
		p.shares[channel] = last
	}
	wait = max(last.Add(every).Sub(now), 0)
	if wait > rest {
		return 0, rest
	}
	p.shares[channel] = now.Add(wait)
	return 1, wait
}

// used is when a slot of the share was last used.
func (p *Pacer) used(channel string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shares[channel]
}

// resting is until when Redis is left alone.
func (p *Pacer) resting() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.downUntil
}

func (p *Pacer) fail(err error) {
	p.mu.Lock()
	p.downUntil = time.Now().Add(rest)
	p.mu.Unlock()
	p.failed(err)
}

package pace

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/redisscript"
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
	redis  *redisscript.Runner
	worker string // names this worker among all

	mu     sync.Mutex
	health health
	among  crowd
	taken  map[string]time.Time // until when the slots that were taken from Redis are used up, as far as this worker knows, by their key
	shares map[string]time.Time // when each channel's last slot of this worker's own share is, or was
}

const (
	// Slots this close to each other are taken together: it saves asking, and is
	// too short for any provider to notice.
	together = 5 * time.Millisecond
	most     = 100
)

var (
	//go:embed slots.lua
	slotsSource string
	//go:embed pause.lua
	pauseSource string
	//go:embed paused.lua
	pausedSource string
	//go:embed presence.lua
	presenceSource string

	slotsScript    = redisscript.NewScript(slotsSource)
	pauseScript    = redisscript.NewScript(pauseSource)
	pausedScript   = redisscript.NewScript(pausedSource)
	presenceScript = redisscript.NewScript(presenceSource)
)

// New returns a pacer for a worker of an installation, whose name must be its own. It
// tells failed of every failure of Redis.
func New(rdb redis.UniversalClient, owner redisscript.Installation, worker string, failed func(error)) *Pacer {
	return &Pacer{
		redis:  redisscript.New(rdb, "pace", redisscript.Config{Installation: owner, OnError: failed, FirstCooldown: doubt, Cooldown: rest}),
		worker: worker, among: stranger(), taken: map[string]time.Time{}, shares: map[string]time.Time{},
	}
}

// Take takes up to so many of a channel's next slots, and returns how long it is
// until the first; all may be used then. Where it takes none, it is to be asked
// again after that time. It never fails: without Redis it takes the next slot of
// this worker's share.
func (p *Pacer) Take(ctx context.Context, channel string, s Speed, wanted int) (slots int, wait time.Duration) {
	if left := p.left(); left > 0 {
		return p.share(channel, s, left)
	}
	slots, wait, err := p.take(ctx, channel, s, wanted)
	left := p.left()
	switch {
	case err != nil && left > 0:
		return p.share(channel, s, left)
	case err != nil:
		return 0, doubt // the error concerns this channel only
	case left > 0:
		return 0, left // some may still use their shares
	}
	return slots, wait
}

func (p *Pacer) take(ctx context.Context, channel string, s Speed, wanted int) (int, time.Duration, error) {
	prefix, err := p.prefix()
	if err != nil {
		return 0, 0, err
	}
	key := fmt.Sprintf("%space:{%s}:%d:%d", prefix, channel, s.Every.Microseconds(), s.Burst)
	longest, known, sent := p.before(key, s)
	answers, err := p.ask(ctx, slotsScript.Call([]string{key}, s.Every.Microseconds(), s.Burst, min(wanted, most), together.Microseconds(),
		longest.Microseconds(), known))
	if err != nil {
		return 0, 0, err
	}
	slots, wait, used := int(answers[0][0]), micros(answers[0][1]), micros(answers[0][2])
	if slots == 0 {
		return 0, min(wait, rest), nil // by then more may be known of the other workers
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[key] = sent.Add(used)
	return slots, wait, nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// before is how long anybody may have to wait for a slot of a channel, and for how
// much longer its slots are used up as far as this worker knows, in microseconds;
// nothing if it knows of none.
func (p *Pacer) before(key string, s Speed) (longest time.Duration, known any, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now = time.Now()
	until, ok := p.taken[key]
	if !ok {
		return p.among.longest(s), "", now
	}
	return p.among.longest(s), until.Sub(now).Microseconds(), now
}

package pace

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// Speed is the speed that a provider can take: one attempt per Every, and up to Burst at once after a rest. Attempts may be
// of several slots each: see [Pacer.Charge].
type Speed struct {
	Every time.Duration // zero: any speed
	Burst int           // at least 1
	Most  int           // slots of the largest usual attempt; 0: each has one
}

// PerSpan returns the speed of rate attempts in a time span, evenly spaced except for the burst.
func PerSpan(rate int, span time.Duration, burst int) Speed {
	micros := (span.Microseconds() + int64(rate) - 1) / int64(rate)
	return Speed{Every: max(time.Duration(micros), 1) * time.Microsecond, Burst: max(burst, 1)}
}

// Pacer hands out slots. It is safe for concurrent use.
type Pacer struct {
	redis  *redisscript.Runner
	worker string // names this worker among all

	mu          sync.Mutex
	health      health
	among       peers
	taken       map[string]time.Time  // by key: the end of all slots that were taken in Redis, as far as this worker knows
	shares      map[string]time.Time  // by channel: the last slot of this worker's share
	sharing     map[string]bool       // channels whose last slot was one of this worker's share
	owed        map[string]int        // by channel: slots that were used, and not taken in Redis yet
	unpublished map[pausing]time.Time // ends of pauses that Redis does not know yet
}

const (
	together = 5 * time.Millisecond // slots this close are taken in one exchange: too short for a provider to notice
	most     = 100                  // maximum number of slots taken together
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

// New returns a pacer for a worker of an installation. The worker's name must be unique. It reports every failure of
// Redis to failed.
func New(rdb redisclient.Client, owner redisscript.Installation, worker string, failed func(error)) *Pacer {
	return &Pacer{
		redis:  redisscript.New(rdb, "pace", redisscript.Config{Installation: owner, OnError: failed, FirstCooldown: doubt, Cooldown: rest}),
		worker: worker, among: guessedPeers(), taken: map[string]time.Time{}, shares: map[string]time.Time{}, sharing: map[string]bool{}, owed: map[string]int{},
		unpublished: map[pausing]time.Time{},
	}
}

// Order asks for the next slots of a channel.
type Order struct {
	Channel string
	Speed   Speed
	Wanted  int // maximum number of attempts
	Each    int // slots of each attempt, as far as is known; 0: 1
	Demand
}

// Slots are slots that were taken.
type Slots struct {
	Taken int           // the number of attempts
	Wait  time.Duration // until the first one, when all may be used; if none was taken, until the next try
	Tags  *Tags         // of all workers; nil: Redis was not asked
}

// Take takes some of a channel's next slots. It never fails: without Redis it takes the next slot of this worker's share.
func (p *Pacer) Take(ctx context.Context, o Order) Slots {
	if left := max(p.redis.Left(), p.quietFor()); left > 0 {
		return p.share(o, left)
	}
	slots, err := p.take(ctx, o)
	left, quiet := p.redis.Left(), p.quietFor()
	switch {
	case err != nil && left > 0:
		return p.share(o, max(left, quiet))
	case err != nil:
		return Slots{Wait: doubt} // the error concerns this channel only
	case quiet > 0:
		return Slots{Wait: quiet, Tags: slots.Tags} // other workers may still use their shares
	}
	return slots
}

func (p *Pacer) take(ctx context.Context, o Order) (Slots, error) {
	prefix, err := p.prefix()
	if err != nil {
		return Slots{}, err
	}
	key := slotsKey(prefix, o.Channel, o.Speed)
	longest, known, sent := p.before(key, o.Speed)
	each := max(o.Each, 1) // several slots are one that is longer
	args := []any{int64(each) * o.Speed.Every.Microseconds(), 1 + float64(o.Speed.Burst-1)/float64(each), min(o.Wanted, most), together.Microseconds(), longest.Microseconds(), known}
	calls := []redisscript.Call{slotsScript.Call([]string{key, tagsKey(prefix, o.Channel)}, o.Demand.arguments(args)...)}
	charge, owed, _ := p.repayment(prefix, o.Channel, o.Speed)
	if owed > 0 {
		calls = []redisscript.Call{charge, calls[0]}
	}
	answers, err := p.ask(ctx, calls...)
	if owed > 0 {
		p.repaid(key, o.Channel, owed, sent, answers, err)
	}
	if err != nil {
		return Slots{}, err
	}
	a := answers[len(answers)-1]
	slots, used := Slots{Taken: int(a[0]), Wait: micros(a[1]), Tags: tagsOf(a[3:])}, micros(a[2])
	if slots.Taken == 0 {
		slots.Wait = min(slots.Wait, rest) // by then more may be known of the other workers
		return slots, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[key] = sent.Add(used)
	p.sharing[o.Channel] = false
	return slots, nil
}

func slotsKey(prefix, channel string, s Speed) string {
	return fmt.Sprintf("%space:{%s}:%d:%d", prefix, channel, s.Every.Microseconds(), s.Burst)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// Forget forgets a channel that is not used any more. Others, and this one if it is used again, know its slots from Redis.
func (p *Pacer) Forget(channel string, s Speed) {
	prefix, err := p.redis.Prefix()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.taken, slotsKey(prefix, channel, s))
	}
	delete(p.shares, channel)
	delete(p.sharing, channel)
	delete(p.owed, channel)
}

// before returns how long a worker may have to wait for a slot of a channel, and for how many microseconds its slots
// are used up as far as this worker knows; "" if it knows of none.
func (p *Pacer) before(key string, s Speed) (longest time.Duration, known any, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, known = time.Now(), ""
	if until, ok := p.taken[key]; ok {
		known = until.Sub(now).Microseconds()
	}
	return p.among.longest(s), known, now
}

package quota

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// Cache is a copy of recipients' bookings in Redis. It lets the caller refuse a taken time with a single read of
// Postgres, without a lock, a transaction or a commit. It decides nothing.
//
// The cache is disposable. A recipient's bookings are loaded when one of them is booked, and expire ten minutes later,
// used or not. So every error in the cache heals by itself. While Redis does not answer, every recipient is [Cold].
//
// Updates run in the background: Fill, Add, Drop, Skip and Forget return at once, and share an exchange with Redis. If
// Redis is too slow, some updates are dropped.
type Cache struct {
	redis *redisscript.Runner
	later groupcommit.Group[redisscript.Call, struct{}]

	refused groupcommit.Group[refusal, struct{}]
}

// Recipient is the owner of bookings: the tenant, and the recipient's id in that tenant.
type Recipient struct {
	Tenant uuid.UUID
	ID     string
}

// State is the cache's knowledge about a recipient.
type State int

// The states that [Cache.Reserve] returns.
const (
	Cold    State = iota // not loaded: Postgres decides
	Free                 // booked in the cache: Postgres decides
	Blocked              // probably no place: Postgres confirms it, or decides
)

// String returns the state in lower case.
func (s State) String() string { return [...]string{"cold", "free", "blocked"}[s] }

// CacheAnswer is the result of [Cache.Reserve].
type CacheAnswer struct {
	State State
	Fill  bool // the recipient is not loaded: after the decision, call [Cache.Fill]
}

const (
	ttl     = 10 * time.Minute           // how long a recipient stays loaded
	memory  = 5 * time.Second            // how long a change is kept for callers that are loading a recipient; longer than a booking takes
	gather  = 5 * time.Millisecond       // how long an update waits for others to share its exchange
	waiting = 50 * redisscript.MaxWeight // maximum weight of waiting updates: 100 ms of Redis
)

// Every script can run twice with the same outcome, because the client repeats a call whose reply was lost.
var (
	//go:embed lua/reserve.lua
	reserveLua string
	//go:embed lua/merge.lua
	mergeLua string
	//go:embed lua/change.lua
	changeLua string
	//go:embed lua/skip.lua
	skipLua string
	//go:embed lua/forget.lua
	forgetLua string

	reserveScript = redisscript.NewScript(reserveLua)
	mergeScript   = redisscript.NewScript(mergeLua)
	changeScript  = redisscript.NewScript(changeLua)
	skipScript    = redisscript.NewScript(skipLua)
	forgetScript  = redisscript.NewScript(forgetLua)
)

// NewCache returns a cache that uses rdb, which the caller closes.
func NewCache(rdb redisclient.Client, cfg redisscript.Config) *Cache {
	c := &Cache{redis: redisscript.New(rdb, "quota cache", cfg)}
	c.later = groupcommit.Group[redisscript.Call, struct{}]{
		Weight:     func(call redisscript.Call) int { return call.Weight },
		MaxWeight:  redisscript.MaxWeight,
		MaxWaiting: waiting,
		Pause:      gather,
		Run: func(ctx context.Context, calls []redisscript.Call) ([]struct{}, error) {
			_, err := c.redis.RunAll(ctx, calls...)
			return make([]struct{}, len(calls)), err
		},
	}
	c.refused = groupcommit.Group[refusal, struct{}]{MaxWeight: refusalsAtOnce, MaxWaiting: waitingRefusals, Pause: gather, Run: c.keepRefusals}
	return c
}

// Reserve books b in the cache if the recipient is loaded and the policy allows it. Set b.Kind if and only if some rule
// for the recipient's pushes depends on kinds, even if it is not in p. Reserve never fails: a cache that cannot answer
// is Cold.
func (c *Cache) Reserve(r Recipient, b Booking, p Policy) CacheAnswer {
	args, near, inTime := reserveArgs(b, p)
	if !inTime {
		return CacheAnswer{State: Blocked}
	}
	return cacheAnswer(c.run(r, reserveScript, near, args...))
}

// cacheAnswer reads the reply of reserve.lua. Any other reply, such as a failure, counts as Cold.
func cacheAnswer(reply []int64) CacheAnswer {
	if len(reply) != 1 {
		return CacheAnswer{}
	}
	switch reply[0] {
	case 1:
		return CacheAnswer{Fill: true}
	case 2:
		return CacheAnswer{State: Free}
	case 3:
		return CacheAnswer{State: Blocked}
	}
	return CacheAnswer{}
}

// Fill loads the recipient with its bookings as Postgres had them a moment ago. Bookings that are too old to matter may
// be missing. Updates since then take precedence. Set kinds if the bookings have kinds because some rule depends on
// them.
func (c *Cache) Fill(r Recipient, bookings []Booking, kinds bool) {
	c.merge(r, ttl, kinds, bookings...)
}

// Add records that Postgres has booked b, unless a later update exists. Set b.Kind as for Reserve.
func (c *Cache) Add(r Recipient, b Booking) { c.merge(r, 0, b.Kind != Kind{}, b) }

func (c *Cache) merge(r Recipient, ttl time.Duration, kinds bool, bookings ...Booking) {
	if len(bookings) > 0 {
		kinds = bookings[0].Kind != Kind{}
	}
	args := append(make([]any, 0, 2+2*len(bookings)), ttl.Milliseconds(), kinds)
	for _, b := range bookings {
		args = append(args, b.At.UnixMilli(), b.ID.String()+kindText(b.Kind))
	}
	c.tell(r, mergeScript, 20+len(bookings), args...)
}

// Drop undoes a Reserve whose push was not created. Unlike Release it returns at once.
func (c *Cache) Drop(r Recipient, b Booking) {
	c.tell(r, changeScript, 20, b.ID.String(), "-inf", memory.Milliseconds(), kindText(b.Kind))
}

// Skip marks a recipient with too many bookings for the cache, so that callers do not try to load it for a while.
func (c *Cache) Skip(r Recipient) { c.tell(r, skipScript, 20, ttl.Milliseconds()) }

// Forget drops recipients from the cache, because Postgres contradicted it, could not be asked, or has booked many at
// once.
func (c *Cache) Forget(rs ...Recipient) {
	for _, r := range rs {
		c.tell(r, forgetScript, 2)
	}
}

// Hold records that Postgres has moved a push. Always set the push's Kind: the cache knows whether it stores kinds.
func (c *Cache) Hold(r Recipient, b Booking) {
	c.run(r, changeScript, 0, b.ID.String(), b.At.UnixMilli(), memory.Milliseconds(), kindText(b.Kind))
}

// Release records that a push has given its place back. Set b as for Hold; its time does not matter.
func (c *Cache) Release(r Recipient, b Booking) {
	c.run(r, changeScript, 0, b.ID.String(), "-inf", memory.Milliseconds(), kindText(b.Kind))
}

// Flush waits until all background updates have run. It returns ctx.Err() if ctx ends first.
func (c *Cache) Flush(ctx context.Context) error {
	return errors.Join(c.later.Flush(ctx), c.refused.Flush(ctx))
}

// run runs a script that reads at most that many bookings. It returns nil on failure.
func (c *Cache) run(r Recipient, script *redisscript.Script, bookings int, args ...any) []int64 {
	prefix, err := c.redis.Prefix()
	if err != nil {
		return nil
	}
	call := script.Call(keys(prefix, r), args...)
	call.Weight = 20 + bookings
	answer, _ := c.redis.Run(context.Background(), call)
	return answer
}

// tell queues a script call.
func (c *Cache) tell(r Recipient, script *redisscript.Script, weight int, args ...any) {
	prefix, err := c.redis.Prefix()
	if err != nil {
		return
	}
	call := script.Call(keys(prefix, r), args...)
	call.Weight = weight
	c.later.Go(call)
}

// keys returns the keys of a recipient, in one cluster slot. They have a fixed size and contain no personal data.
func keys(prefix string, r Recipient) []string { return []string{tag(prefix, r) + ":bookings"} }

// tag returns the common prefix of a recipient's keys.
func tag(prefix string, r Recipient) string {
	h := sha256.Sum256([]byte(r.ID))
	return prefix + "{" + r.Tenant.String() + ":" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}"
}

package quota

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// Cache is a copy of recipients' bookings in Redis. It knows at once that a place is taken, so that a refusal costs
// Postgres one read, without a lock, a transaction or a commit. It decides nothing.
//
// The cache is disposable. A recipient's bookings are loaded when one of them is booked, and expire ten minutes
// later, used or not. So every error in the cache ends by itself. While Redis does not answer, everything is [Cold].
//
// What a submit has found out is told behind its caller's back: Fill, Add, Drop, Skip and Forget return at once, gather, and
// share an exchange with Redis. If Redis is too slow for them, some are left out.
type Cache struct {
	redis *redisscript.Runner
	later groupcommit.Group[redisscript.Call, struct{}]

	refused groupcommit.Group[refusal, struct{}]
}

// Recipient is the owner of bookings: the tenant and the tenant's own id.
type Recipient struct {
	Tenant uuid.UUID
	ID     string
}

// State is what the cache knows about a recipient.
type State int

// The states that [Cache.Reserve] answers.
const (
	Cold    State = iota // nothing is known: Postgres decides
	Free                 // a place was booked in the cache: Postgres decides
	Blocked              // there seems to be no place: Postgres confirms it, or decides
)

// String returns the state in lower case.
func (s State) String() string { return [...]string{"cold", "free", "blocked"}[s] }

// CacheAnswer is the answer of [Cache.Reserve].
type CacheAnswer struct {
	State State
	Fill  bool // the recipient is not loaded: after the decision, call [Cache.Fill]
}

const (
	ttl     = 10 * time.Minute           // how long a recipient stays loaded
	memory  = 5 * time.Second            // for how long a change is kept for those who load a recipient; longer than a booking takes
	gather  = 5 * time.Millisecond       // what is told later waits so long for more
	waiting = 50 * redisscript.MaxWeight // of what is told later: 100 ms of Redis
)

// Every script can run twice with the same outcome, since the client repeats a call whose reply was lost.
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
func NewCache(rdb redis.UniversalClient, cfg redisscript.Config) *Cache {
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

// Reserve books b in the cache if the cache knows the recipient and the policy allows it. The booking has a Kind if, and
// only if, some rule for the recipient's pushes asks for it, though it be none of p. It never fails: a cache that cannot
// answer is Cold.
func (c *Cache) Reserve(r Recipient, b Booking, p Policy) CacheAnswer {
	args, near, inTime := reserveArgs(b, p)
	if !inTime {
		return CacheAnswer{State: Blocked}
	}
	return cacheAnswer(c.run(r, reserveScript, near, args...))
}

// cacheAnswer reads the reply of reserve.lua. Any other reply, as of a failure, is that of a cache that knows
// nothing.
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

// Fill loads the recipient with its bookings as Postgres had them a moment ago. Only those that are too old to matter may
// be missing. What the cache was told since then holds. Kinds says that the bookings have their kinds, if there are any:
// because some rule asks for them.
func (c *Cache) Fill(r Recipient, bookings []Booking, kinds bool) {
	c.merge(r, ttl, kinds, bookings...)
}

// Add tells the cache that Postgres has booked b, unless that has changed since. The booking has a Kind as for Reserve.
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

// Drop gives back what Reserve booked for a push that there is not. Unlike Release it returns at once.
func (c *Cache) Drop(r Recipient, b Booking) {
	c.tell(r, changeScript, 20, b.ID.String(), "-inf", memory.Milliseconds(), kindText(b.Kind))
}

// Skip notes that the recipient has too many bookings for the cache, so that nothing tries to load them for a while.
func (c *Cache) Skip(r Recipient) { c.tell(r, skipScript, 20, ttl.Milliseconds()) }

// Forget drops what the cache knows of recipients, because Postgres said otherwise, could not be asked, or has booked
// many at once.
func (c *Cache) Forget(rs ...Recipient) {
	for _, r := range rs {
		c.tell(r, forgetScript, 2)
	}
}

// Hold tells the cache that Postgres has moved a push. The booking has the push's Kind, whether or not a rule asks for it:
// the cache knows whether it keeps kinds.
func (c *Cache) Hold(r Recipient, b Booking) {
	c.run(r, changeScript, 0, b.ID.String(), b.At.UnixMilli(), memory.Milliseconds(), kindText(b.Kind))
}

// Release tells the cache that a push has given its place back. The booking is as for Hold, and its time does not matter.
func (c *Cache) Release(r Recipient, b Booking) {
	c.run(r, changeScript, 0, b.ID.String(), "-inf", memory.Milliseconds(), kindText(b.Kind))
}

// Flush waits until everything is told that was to be told later. The error is that of ctx.
func (c *Cache) Flush(ctx context.Context) error {
	return errors.Join(c.later.Flush(ctx), c.refused.Flush(ctx))
}

// run runs a script that looks at so many bookings at most. It returns nothing if that fails.
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

// tell runs a script later.
func (c *Cache) tell(r Recipient, script *redisscript.Script, weight int, args ...any) {
	prefix, err := c.redis.Prefix()
	if err != nil {
		return
	}
	call := script.Call(keys(prefix, r), args...)
	call.Weight = weight
	c.later.Go(call)
}

// keys are those of a recipient, in one cluster slot. They are of fixed size and hold nothing that names a person.
func keys(prefix string, r Recipient) []string { return []string{tag(prefix, r) + ":bookings"} }

// tag begins the keys of a recipient.
func tag(prefix string, r Recipient) string {
	h := sha256.Sum256([]byte(r.ID))
	return prefix + "{" + r.Tenant.String() + ":" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}"
}

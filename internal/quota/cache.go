package quota

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/redisscript"
)

// Cache is a copy of recipients' bookings in Redis. It knows at once that a place is taken, so that a refusal costs
// Postgres one read, without a lock, a transaction or a commit. It decides nothing.
//
// The cache is disposable. A recipient's bookings are loaded when one of them is booked, and expire ten minutes
// later, used or not. So every error in the cache ends by itself. While Redis does not answer, everything is [Cold].
type Cache struct{ redis *redisscript.Runner }

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
	Fill  bool // after the decision, call [Cache.Fill]
}

const (
	ttl       = 10 * time.Minute // how long a recipient stays loaded
	fillerTTL = 30 * time.Second // how long a filler may take
)

// Every script can run twice with the same outcome, since the client repeats a call whose reply was lost.
var (
	//go:embed lua/reserve.lua
	reserveLua string
	//go:embed lua/fill.lua
	fillLua string
	//go:embed lua/change.lua
	changeLua string
	//go:embed lua/skip.lua
	skipLua string

	reserveScript = redisscript.NewScript(reserveLua)
	fillScript    = redisscript.NewScript(fillLua)
	changeScript  = redisscript.NewScript(changeLua)
	skipScript    = redisscript.NewScript(skipLua)
)

// NewCache returns a cache that uses rdb, which the caller closes.
func NewCache(rdb redis.UniversalClient, cfg redisscript.Config) *Cache {
	return &Cache{redis: redisscript.New(rdb, "quota cache", cfg)}
}

// Reserve books b in the cache if the cache knows the recipient and the policy allows it. It never fails: a cache
// that can not answer is Cold.
func (c *Cache) Reserve(r Recipient, b Booking, p Policy) CacheAnswer {
	args, near := append(make([]any, 0, 16), b.ID.String(), b.At.UnixMilli(), fillerTTL.Milliseconds()), 0
	for _, rule := range p {
		args = append(args, rule.Limit, rule.Window.Milliseconds())
		near = min(near+rule.Limit, redisscript.MaxWeight)
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

// Fill loads the recipient's bookings after a Reserve of the push id answered with Fill, unless they have changed
// since. Only bookings that are too old to matter may be missing.
func (c *Cache) Fill(r Recipient, id uuid.UUID, bookings []Booking) {
	args := append(make([]any, 0, 2+2*len(bookings)), id.String(), ttl.Milliseconds())
	for _, b := range bookings {
		args = append(args, b.At.UnixMilli(), b.ID.String())
	}
	c.run(r, fillScript, len(bookings), args...)
}

// Skip notes that the recipient has too many bookings for the cache, so that nothing tries to load them for a while.
func (c *Cache) Skip(r Recipient) { c.run(r, skipScript, 0, ttl.Milliseconds()) }

// Hold tells the cache that Postgres has booked b, or moved a push there.
func (c *Cache) Hold(r Recipient, b Booking) {
	c.run(r, changeScript, 0, b.ID.String(), b.At.UnixMilli())
}

// Release tells the cache that a push has given its place back.
func (c *Cache) Release(r Recipient, id uuid.UUID) { c.run(r, changeScript, 0, id.String()) }

// Forget drops what the cache knows of recipients, because Postgres said otherwise, could not be asked, or has booked
// many at once.
func (c *Cache) Forget(rs ...Recipient) {
	prefix, err := c.redis.Prefix()
	if err != nil {
		return
	}
	_ = c.redis.Pipeline(context.Background(), func(ctx context.Context, pipe redis.Pipeliner) {
		for _, r := range rs {
			pipe.Del(ctx, keys(prefix, r)...)
		}
	})
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

// keys share a hash tag, hence a cluster slot. They are of fixed size and hold nothing that names a person.
func keys(prefix string, r Recipient) []string {
	h := sha256.Sum256([]byte(r.ID))
	tag := prefix + "{" + r.Tenant.String() + ":" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}"
	return []string{tag + ":bookings", tag + ":filler"}
}

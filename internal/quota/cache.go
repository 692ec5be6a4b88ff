package quota

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/rediskey"
)

// Cache is a copy of recipients' bookings in Redis. It knows at once that a
// place is taken, so that a refusal costs Postgres one look, without a lock, a
// transaction or a commit. It decides nothing.
//
// The cache is disposable. A recipient's bookings are loaded when one of them
// is booked, and expire some minutes later whether used or not, so that
// whatever went wrong is forgotten by itself. While Redis does not answer,
// everything is [Cold].
type Cache struct {
	rdb   redis.UniversalClient
	calls *groupcommit.Group[call, *redis.Cmd]
	cfg   CacheConfig
	now   func() time.Time

	downUntil atomic.Int64 // Unix nanoseconds; until then Redis is left alone
}

// CacheConfig bounds the cache's waiting and remembering. Zero values mean
// the defaults.
type CacheConfig struct {
	TTL     time.Duration    // how long a recipient stays loaded; 10 minutes
	Timeout time.Duration    // for one exchange with Redis; 250 ms
	Pause   time.Duration    // how long Redis is left alone after a failure; 1 s
	OnError func(error)      // told of every failure; nil: nobody
	Observe func(calls int)  // told the size of every pipeline; nil: nobody
	Now     func() time.Time // nil: time.Now

	Installation rediskey.Installation // whose bookings these are; without its name nothing is known
}

// Recipient is whose bookings are meant: the tenant and the tenant's own id.
type Recipient struct {
	Tenant uuid.UUID
	ID     string
}

// State is what the cache knows about a recipient.
type State int

// The answers to a reservation.
const (
	Cold    State = iota // nothing is known: Postgres decides
	Free                 // a place was booked in the cache: Postgres decides
	Blocked              // there seems to be no place: Postgres confirms it, or decides
)

// String returns the state in lower case.
func (s State) String() string { return [...]string{"cold", "free", "blocked"}[s] }

// Reservation is the cache's answer.
type Reservation struct {
	State State
	Fill  bool // after deciding, call [Cache.Fill]
}

// NewCache returns a cache that uses rdb, which the caller closes.
func NewCache(rdb redis.UniversalClient, cfg CacheConfig) *Cache {
	cfg.TTL = orDefault(cfg.TTL, 10*time.Minute)
	cfg.Timeout = orDefault(cfg.Timeout, 250*time.Millisecond)
	cfg.Pause = orDefault(cfg.Pause, time.Second)
	l := &Cache{rdb: rdb, cfg: cfg, now: cfg.Now}
	if l.now == nil {
		l.now = time.Now
	}
	l.calls = &groupcommit.Group[call, *redis.Cmd]{
		Parallel:  2,
		Weight:    func(c call) int { return c.weight },
		MaxWeight: maxPipeline,
		Observe:   cfg.Observe,
		Run: func(ctx context.Context, calls []call) ([]*redis.Cmd, error) {
			ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
			defer cancel()
			return pipeline(ctx, rdb, calls), nil
		},
	}
	return l
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

// Reserve books b in the cache if the cache knows the recipient and the
// policy allows it. It never fails: a cache that can not answer is Cold.
func (l *Cache) Reserve(r Recipient, b Booking, p Policy) Reservation {
	const fillerTTL = 30 * time.Second
	args, near := []any{b.ID.String(), b.At.UnixMilli(), fillerTTL.Milliseconds()}, 0
	for _, rule := range p {
		args = append(args, rule.Limit, rule.Window.Milliseconds())
		near = min(near+rule.Limit, maxPipeline)
	}
	answer, _ := l.do(r, reserveScript, args, near).Text()
	return reservation(answer)
}

// reservation reads the answer of the script. Any other, as of a failure, is
// that of a cache that knows nothing.
func reservation(answer string) Reservation {
	switch answer {
	case "cold":
		return Reservation{Fill: true}
	case "free":
		return Reservation{State: Free}
	case "blocked":
		return Reservation{State: Blocked}
	}
	return Reservation{}
}

// Fill loads the recipient's bookings after a Reserve of the push id answered
// with Fill, unless they have changed since. They must be complete, but for
// those too old to matter.
func (l *Cache) Fill(r Recipient, id uuid.UUID, bookings []Booking) {
	args := []any{id.String(), l.cfg.TTL.Milliseconds()}
	for _, b := range bookings {
		args = append(args, b.At.UnixMilli(), b.ID.String())
	}
	l.do(r, fillScript, args, len(bookings))
}

// Skip notes that the recipient has too many bookings to be kept here, so that for
// a while nobody tries to fill them in.
func (l *Cache) Skip(r Recipient) {
	l.do(r, skipScript, []any{l.cfg.TTL.Milliseconds()}, 0)
}

// Hold tells the cache that Postgres has booked b, or moved a push there.
func (l *Cache) Hold(r Recipient, b Booking) {
	l.do(r, changeScript, []any{b.ID.String(), b.At.UnixMilli()}, 0)
}

// Release tells the cache that a push has given its place back.
func (l *Cache) Release(r Recipient, id uuid.UUID) {
	l.do(r, changeScript, []any{id.String()}, 0)
}

// Forget drops what the cache knows of recipients, because Postgres said
// otherwise, could not be asked, or has booked many at once.
func (l *Cache) Forget(rs ...Recipient) {
	prefix, named := l.cfg.Installation.Prefix()
	if !named || l.down() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	defer cancel()
	pipe := l.rdb.Pipeline()
	for _, r := range rs {
		pipe.Del(ctx, keys(prefix, r)...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		l.failed(err)
	}
}

// do runs a script that looks at so many bookings at most, together with those
// of other callers. After a failure Redis is left alone for a moment, so that its
// absence costs most callers nothing.
func (l *Cache) do(r Recipient, script *redis.Script, args []any, bookings int) *redis.Cmd {
	prefix, named := l.cfg.Installation.Prefix()
	switch {
	case !named:
		return redis.NewCmdResult(nil, errUnnamed)
	case l.down():
		return redis.NewCmdResult(nil, errDown)
	}
	cmd, _ := l.calls.Do(call{script: script, keys: keys(prefix, r), args: args, weight: weight(bookings)})
	if err := cmd.Err(); err != nil {
		l.failed(err)
	}
	return cmd
}

// down reports whether Redis is left alone.
func (l *Cache) down() bool { return l.now().UnixNano() < l.downUntil.Load() }

var (
	errDown    = errors.New("quota cache: Redis failed a moment ago")
	errUnnamed = errors.New("quota cache: Postgres has not yet said what its keys are called")
)

func (l *Cache) failed(err error) {
	if !ofOneKey(err) {
		l.downUntil.Store(l.now().Add(l.cfg.Pause).UnixNano())
	}
	if l.cfg.OnError != nil {
		l.cfg.OnError(fmt.Errorf("quota cache: %w", err))
	}
}

// keys share a hash tag, hence a cluster slot. They are of fixed size and hold
// nothing that names a person.
func keys(prefix string, r Recipient) []string {
	h := sha256.Sum256([]byte(r.ID))
	tag := prefix + "{" + r.Tenant.String() + ":" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}"
	return []string{tag + ":bookings", tag + ":filler"}
}

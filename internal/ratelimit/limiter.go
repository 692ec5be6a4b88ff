package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/groupcommit"
)

// Never is the RetryAfter of what is not allowed at any time, because it costs
// more than the limit has when nothing is used.
const Never time.Duration = -1

// ErrUnavailable is returned while Redis does not answer, or can not decide.
var ErrUnavailable = errors.New("ratelimit: no decision from Redis")

// Rule is one limit of one subject: whoever or whatever is limited. The same
// subject may have several.
type Rule struct {
	Subject string
	Limit   Limit
}

// Result is how one limit stands after a decision. All times are whole
// microseconds.
type Result struct {
	Allowed    bool          // this limit has, or had, room for the cost
	Limit      int           // the most that can be used at once: the burst of a bucket, the limit of others
	Remaining  int           // what could be used right now
	RetryAfter time.Duration // until there is room for the cost if nobody else comes; 0: now, or Never
	ResetAfter time.Duration // until it is as if nobody had ever come; 0: it is so
}

// Decision is whether all limits allow a cost.
type Decision struct {
	Allowed bool
	Results []Result // one for each rule, in their order
}

// Limiter decides by what is in Redis. Any number of them, in any number of
// programs, share the same limits.
type Limiter struct {
	scripts *scripts
	calls   *groupcommit.Group[call, *redis.Cmd]
	cfg     Config

	downUntil atomic.Int64 // Unix nanoseconds; until then Redis is left alone
}

// Config bounds the limiter's waiting. Zero values mean the defaults.
type Config struct {
	Timeout time.Duration    // for one exchange with Redis; 250 ms
	Pause   time.Duration    // how long Redis is left alone after it failed; 1 s
	OnError func(error)      // told of every failure; nil: nobody
	Observe func(calls int)  // told the size of every pipeline; nil: nobody
	Now     func() time.Time // for Pause only; nil: time.Now
}

// New returns a limiter that uses rdb, which the caller closes.
func New(rdb redis.UniversalClient, cfg Config) *Limiter { return newLimiter(rdb, cfg, file("head")) }

func newLimiter(rdb redis.UniversalClient, cfg Config, head string) *Limiter {
	if cfg.Timeout == 0 {
		cfg.Timeout = 250 * time.Millisecond
	}
	if cfg.Pause == 0 {
		cfg.Pause = time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Limiter{scripts: &scripts{head: head}, cfg: cfg, calls: &groupcommit.Group[call, *redis.Cmd]{
		Parallel:  2,
		MaxWeight: 1000,
		Observe:   cfg.Observe,
		Run: func(ctx context.Context, calls []call) ([]*redis.Cmd, error) {
			ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
			defer cancel()
			return pipeline(ctx, rdb, calls), nil
		},
	}}
}

// Take SPENDS the cost of every rule if all of them allow it, and nothing
// otherwise, in one step. The state of all rules is kept under tag: in a
// cluster, in one slot. Rules that are the same are charged once. Without
// rules everything is allowed.
//
// If a reply of Redis is lost, the client asks again, and the cost may be
// charged twice; if there is no reply at all, it may be charged without a
// decision. More than a limit is never allowed. The error is [ErrUnavailable],
// or says that a limit is not valid or ctx is over.
func (l *Limiter) Take(ctx context.Context, tag string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, "charge", tag, cost, rules)
}

// Look answers as Take would, and spends NOTHING.
func (l *Limiter) Look(ctx context.Context, tag string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, "look", tag, cost, rules)
}

func (l *Limiter) decide(ctx context.Context, verb, tag string, cost int, rules []Rule) (Decision, error) {
	distinct, err := check(cost, rules)
	if err != nil || len(rules) == 0 {
		return Decision{Allowed: err == nil}, err
	}
	if cost == 0 {
		verb = "look" // a charge of nothing would leave a key
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	answer, err := l.run(l.plan(verb, tag, cost, distinct))
	if err != nil {
		return Decision{}, err
	}
	d, err := read(cost, distinct, answer)
	if err != nil || len(distinct) == len(rules) {
		return d, err
	}
	all := make([]Result, len(rules))
	for i, r := range rules {
		r.Limit = r.Limit.WithDefaults()
		all[i] = d.Results[slices.Index(distinct, r)]
	}
	return Decision{d.Allowed, all}, nil
}

// check returns the different ones of the rules, with their defaults.
func check(cost int, rules []Rule) ([]Rule, error) {
	if cost < 0 {
		return nil, fmt.Errorf("ratelimit: the cost %d is negative", cost)
	}
	distinct := make([]Rule, 0, len(rules))
	for _, r := range rules {
		if faults := r.Limit.Validate(); len(faults) > 0 {
			return nil, fmt.Errorf("ratelimit: %s %v %s", faults[0].Field, faults[0].Value, faults[0].Message)
		}
		r.Limit = r.Limit.WithDefaults()
		if !slices.Contains(distinct, r) {
			distinct = append(distinct, r)
		}
	}
	return distinct, nil
}

// plan is the script to run for these rules.
func (l *Limiter) plan(verb, tag string, cost int, rules []Rule) call {
	names, slot := make([]string, len(rules)), slotOf(tag)
	c := call{keys: make([]string, len(rules)), args: append(make([]any, 0, 1+7*len(rules)), verb)}
	for i, r := range rules {
		p, charged := r.Limit.Algorithm.program(), chargeable(r.Limit, cost)
		names[i], c.keys[i] = p.name, slot+keyOf(r)
		c.args = append(append(c.args, p.name, charged), p.numbers(r.Limit, charged)...)
	}
	c.script = l.scripts.of(names)
	return c
}

// chargeable bounds a cost that has no room ever, so that no arithmetic
// overflows.
func chargeable(l Limit, cost int) int { return min(cost, l.capacity()+1) }

// run runs a call together with those of others. After Redis failed it is left
// alone for a moment, so that its absence costs most callers no time, and is
// told of once.
func (l *Limiter) run(c call) ([]int64, error) {
	if l.cfg.Now().UnixNano() < l.downUntil.Load() {
		return nil, ErrUnavailable
	}
	cmd, _ := l.calls.Do(c)
	answer, err := cmd.Int64Slice()
	if err == nil {
		return answer, nil
	}
	if !ofOneKey(err) {
		l.downUntil.Store(l.cfg.Now().Add(l.cfg.Pause).UnixNano())
	}
	err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	if l.cfg.OnError != nil {
		l.cfg.OnError(err)
	}
	return nil, err
}

// ofOneKey reports whether others may have more luck: a script failed over what
// stands at its keys. Whatever else Redis says it will say to everybody.
func ofOneKey(err error) bool {
	return redis.HasErrorPrefix(err, "WRONGTYPE") || redis.HasErrorPrefix(err, "user_script") || redis.HasErrorPrefix(err, "Error running script")
}

// read turns a script's answer into a decision.
func read(cost int, rules []Rule, answer []int64) (Decision, error) {
	d := Decision{Allowed: true, Results: make([]Result, len(rules))}
	for i, r := range rules {
		p := r.Limit.Algorithm.program()
		if len(answer) < 1+p.answers {
			return Decision{}, fmt.Errorf("%w: it answers too little", ErrUnavailable)
		}
		allowed := answer[0] == 1
		one := p.result(r.Limit, chargeable(r.Limit, cost), allowed, answer[1:])
		one.Allowed, one.Limit = allowed, r.Limit.capacity()
		if cost > r.Limit.capacity() {
			one.RetryAfter = Never
		}
		d.Results[i], d.Allowed, answer = one, d.Allowed && allowed, answer[1+p.answers:]
	}
	return d, nil
}

// slotOf is the part of a key that places it in a cluster. Like the rest it is
// of fixed size and names nobody.
func slotOf(tag string) string {
	h := sha256.Sum256([]byte(tag))
	return "sq:limit:{" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}:"
}

// keyOf tells the rules of a tag apart, by everything in them: with another
// limit a subject begins anew.
func keyOf(r Rule) string {
	b := make([]byte, 0, 128)
	b = append(append(b, r.Limit.Algorithm...), 0)
	for _, n := range []int64{int64(r.Limit.Limit), int64(r.Limit.Per), int64(r.Limit.Burst), int64(r.Limit.Precision)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.Sum256(append(b, r.Subject...))
	return base64.RawURLEncoding.EncodeToString(h[:12])
}

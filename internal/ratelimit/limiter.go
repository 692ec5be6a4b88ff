package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/rediskey"
)

// Never is the RetryAfter of what is not allowed at any time, because it costs
// more than the limit has when nothing is used.
const Never time.Duration = -1

var (
	// ErrUnavailable is returned while Redis does not answer, or can not decide.
	ErrUnavailable = errors.New("ratelimit: no decision from Redis")
	// ErrBusy is returned where the other calls of the same owner take so long that
	// this one would have to wait for longer than [Config.Wait].
	ErrBusy = errors.New("ratelimit: the owner's other calls use up all that it may use of Redis at a time")
	// ErrApart is returned where a Redis Cluster would have to decide about rules
	// with different tags together.
	ErrApart = errors.New("ratelimit: in a Redis Cluster, rules that are decided together must have the same tag")
)

// Rule is one limit of one subject: whoever or whatever is limited. The same
// subject may have several.
type Rule struct {
	Subject string
	Limit   Limit
	Tag     string // rules of an owner with one tag are in one slot of a cluster
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
	rdb     redis.UniversalClient
	cluster bool
	scripts *scripts
	calls   *groupcommit.Group[call, *redis.IntSliceCmd]
	parts   *bulkhead.Bulkhead[string] // of owners; nil: none
	cfg     Config

	downUntil atomic.Int64 // Unix nanoseconds; until then Redis is left alone
}

// Config bounds the limiter's waiting, and what it makes Redis do. Zero values
// mean the defaults.
type Config struct {
	Timeout time.Duration    // for one exchange with Redis; 250 ms
	Pause   time.Duration    // how long Redis is left alone after it failed; 1 s
	OnError func(error)      // told of every failure; nil: nobody
	Observe func(calls int)  // told the size of every pipeline; nil: nobody
	Now     func() time.Time // for Pause only; nil: time.Now

	Installation rediskey.Installation // whose limits these are; without its name there is no decision

	// Work is how much of Redis' time the calls that are under way may take
	// together, by the estimate of their weight, and OwnerWork how much those of
	// one owner may. Others wait for their turn. 0: as much as they are.
	Work, OwnerWork time.Duration
	Wait            time.Duration // for that turn, at most; twice Timeout, so that a Redis that hangs is known for it
}

// New returns a limiter that uses rdb, which the caller closes.
func New(rdb redis.UniversalClient, cfg Config) *Limiter { return newLimiter(rdb, cfg, file) }

func newLimiter(rdb redis.UniversalClient, cfg Config, file func(name string) string) *Limiter {
	if cfg.Timeout == 0 {
		cfg.Timeout = 250 * time.Millisecond
	}
	if cfg.Pause == 0 {
		cfg.Pause = time.Second
	}
	if cfg.Wait == 0 {
		cfg.Wait = 2 * cfg.Timeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Limiter{rdb: rdb, scripts: &scripts{file: file}, cfg: cfg}
	_, l.cluster = rdb.(*redis.ClusterClient)
	if cfg.Work > 0 {
		l.parts = bulkhead.New[string](cfg.Work.Microseconds(), cfg.OwnerWork.Microseconds())
	}
	l.calls = &groupcommit.Group[call, *redis.IntSliceCmd]{
		Parallel:  2,
		Weight:    func(c call) int { return c.weight },
		MaxWeight: maxPipeline,
		Observe:   cfg.Observe,
		Run: func(ctx context.Context, calls []call) ([]*redis.IntSliceCmd, error) {
			ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
			defer cancel()
			return pipeline(ctx, rdb, calls), nil
		},
	}
	return l
}

// Take SPENDS the cost of every rule if all of them allow it, and nothing
// otherwise, in one step. Owners do not share the state of any rule. Rules that
// are the same are charged once. Without rules everything is allowed.
//
// If a reply of Redis is lost, the client asks again, and the cost may be
// charged twice; if there is no reply at all, it may be charged without a
// decision. More than a limit is never allowed. The error is [ErrUnavailable],
// [ErrBusy] or [ErrApart], or says that a limit is not valid or ctx is over.
func (l *Limiter) Take(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, take, owner, cost, rules)
}

// Peek answers as Take would, and spends NOTHING.
func (l *Limiter) Peek(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, peek, owner, cost, rules)
}

// Refund GIVES BACK the cost of every rule, as far as it is used: of a log or of
// steps, what was used last. It answers as Peek would afterwards.
//
// It is sent once. Where the error is [ErrUnavailable], nobody knows whether it
// was made; who repeats it may give back twice, so that more than the limit is
// allowed.
func (l *Limiter) Refund(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, refund, owner, cost, rules)
}

// Reset FORGETS all that was used of every rule. It answers as Peek would
// afterwards, and can be repeated.
func (l *Limiter) Reset(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, reset, owner, cost, rules)
}

func (l *Limiter) decide(ctx context.Context, verb, owner string, cost int, rules []Rule) (Decision, error) {
	distinct, err := l.check(cost, rules)
	if err != nil || len(rules) == 0 {
		return Decision{Allowed: err == nil}, err
	}
	if cost == 0 && verb != reset {
		verb = peek // a charge of nothing would leave a key
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	prefix, named := l.cfg.Installation.Prefix()
	if !named {
		return Decision{}, ErrUnavailable
	}
	answer, err := l.run(ctx, owner, l.plan(slots{prefix: prefix, owner: owner}, verb, cost, distinct))
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
func (l *Limiter) check(cost int, rules []Rule) ([]Rule, error) {
	if cost < 0 {
		return nil, fmt.Errorf("ratelimit: the cost %d is negative", cost)
	}
	distinct := make([]Rule, 0, len(rules))
	for _, r := range rules {
		if faults := r.Limit.Validate(); len(faults) > 0 {
			return nil, fmt.Errorf("ratelimit: %s %v %s", faults[0].Field, faults[0].Value, faults[0].Message)
		}
		if l.cluster && r.Tag != rules[0].Tag {
			return nil, ErrApart
		}
		r.Limit = r.Limit.WithDefaults()
		if !slices.Contains(distinct, r) {
			distinct = append(distinct, r)
		}
	}
	return distinct, nil
}

// plan is the call that decides about these rules.
func (l *Limiter) plan(slots slots, verb string, cost int, rules []Rule) call {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.Limit.program().name
	}
	c := call{script: l.scripts.of(names), once: verb == refund, weight: callWeight}
	c.args = append(make([]any, 0, 4+8*len(rules)), "evalsha", c.script.hash, len(rules))
	for _, r := range rules {
		c.args = append(c.args, slots.of(r.Tag)+keyOf(r))
	}
	c.args = append(c.args, verb)
	for _, r := range rules {
		p, charged := r.Limit.program(), chargeable(r.Limit, cost)
		c.args = append(append(c.args, p.name, charged), p.numbers(r.Limit, charged)...)
		c.weight += r.Limit.weight()
	}
	if verb == refund {
		c.weight *= 2 // it peeks afterwards
	}
	return c
}

// chargeable bounds a cost that has no room ever, so that no arithmetic
// overflows.
func chargeable(l Limit, cost int) int { return min(cost, l.capacity()+1) }

// read turns a script's answer into a decision.
func read(cost int, rules []Rule, answer []int64) (Decision, error) {
	if len(answer) != answerSize*len(rules) {
		return Decision{}, fmt.Errorf("%w: it answers %d numbers about %d limits", ErrUnavailable, len(answer), len(rules))
	}
	d := Decision{Allowed: true, Results: make([]Result, len(rules))}
	for i, r := range rules {
		part := answer[answerSize*i:][:answerSize]
		allowed := part[0] == 1
		one := r.Limit.program().result(r.Limit, chargeable(r.Limit, cost), allowed, part[1:])
		one.Allowed, one.Limit = allowed, r.Limit.capacity()
		if cost > r.Limit.capacity() {
			one.RetryAfter = Never
		}
		d.Results[i], d.Allowed = one, d.Allowed && allowed
	}
	return d, nil
}

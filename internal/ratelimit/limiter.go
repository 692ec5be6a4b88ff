package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// Never is the RetryAfter of a cost that is never allowed, because it exceeds the capacity of the limit.
const Never time.Duration = -1

var (
	// ErrUnavailable: Redis does not answer, or cannot decide.
	ErrUnavailable = errors.New("ratelimit: no decision from Redis")
	// ErrBusy: because of the owner's other calls, this one would have to wait for longer than [Config.Wait].
	ErrBusy = errors.New("ratelimit: the owner's other calls use up its share of Redis")
	// ErrDifferentTags: a Redis Cluster would have to decide about rules with different tags together.
	ErrDifferentTags = errors.New("ratelimit: in a Redis Cluster, rules that are decided together must have the same tag")
)

// Rule is one limit of one subject, a person or a thing. The same subject may have several.
type Rule struct {
	Subject string
	Limit   Limit
	Tag     string // an owner's rules with the same tag are in one slot of a cluster
}

// Result is the state of one limit after a decision. All times are whole microseconds.
type Result struct {
	Allowed    bool          // this limit has, or had, room for the cost
	Limit      int           // the capacity: the burst of a bucket, the limit of others
	Remaining  int           // what could be used right now
	RetryAfter time.Duration // until there is room for the cost, without other uses meanwhile; 0: now, or Never
	ResetAfter time.Duration // until the limit is fully replenished; 0: it is
}

// Decision reports whether all limits allow a cost.
type Decision struct {
	Allowed bool
	Results []Result // one for each rule, in their order
}

// Limiter decides by the state in Redis. Any number of limiters, in any number of programs, share the same limits.
type Limiter struct {
	redis   *redisscript.Runner
	cluster bool
	scripts *scripts
	parts   *bulkhead.Bulkhead[string] // work of owners; nil: unlimited
	wait    time.Duration
}

// Config bounds the limiter's waiting, and its work for Redis. Zero values mean the defaults.
type Config struct {
	redisscript.Config

	// Work bounds the time of Redis that concurrent calls may take together, by the estimate of their weight, and
	// OwnerWork the time of one owner's calls. Other calls wait. 0: unlimited.
	Work, OwnerWork time.Duration
	Wait            time.Duration // maximum wait; 0: twice Timeout, so that a Redis that hangs is reported as such
}

// New returns a limiter that uses rdb, which the caller closes.
func New(rdb redisclient.Client, cfg Config) *Limiter { return newLimiter(rdb, cfg, file) }

func newLimiter(rdb redisclient.Client, cfg Config, file func(name string) string) *Limiter {
	l := &Limiter{redis: redisscript.New(rdb, "rate limits", cfg.Config), cluster: redisclient.IsCluster(rdb), scripts: &scripts{file: file}, wait: cmp.Or(cfg.Wait, 2*cmp.Or(cfg.Timeout, redisscript.DefaultTimeout))}
	if cfg.Work > 0 {
		l.parts = bulkhead.New[string](cfg.Work.Microseconds(), cfg.OwnerWork.Microseconds())
	}
	return l
}

// Take SPENDS the cost of every rule if all of them allow it, and nothing otherwise, in one step. Owners do not share
// the state of any rule. Equal rules are charged once. Without rules everything is allowed.
//
// If a reply of Redis is lost, the client asks again, and the cost may be charged twice. If there is no reply at all,
// it may be charged without a decision. More than a limit is never allowed. The errors are [ErrUnavailable], [ErrBusy],
// [ErrDifferentTags], the fault of a limit, and the error of ctx.
func (l *Limiter) Take(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, take, owner, cost, rules)
}

// Peek answers as Take would, and spends NOTHING.
func (l *Limiter) Peek(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, peek, owner, cost, rules)
}

// Refund GIVES BACK the cost of every rule, as far as it is used: from a log or from steps, the last use first. It
// answers as Peek would afterwards.
//
// It is sent once. After [ErrUnavailable], the refund may have been made or not. A caller that repeats it may give back
// twice, so that more than the limit is allowed.
func (l *Limiter) Refund(ctx context.Context, owner string, cost int, rules ...Rule) (Decision, error) {
	return l.decide(ctx, refund, owner, cost, rules)
}

// Reset FORGETS all use of every rule. It answers as Peek would afterwards, and can be repeated.
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
	prefix, err := l.redis.Prefix()
	if err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	answer, err := l.run(ctx, owner, l.plan(prefix, owner, verb, cost, distinct))
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

// check returns the distinct rules, with their defaults.
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
			return nil, ErrDifferentTags
		}
		r.Limit = r.Limit.WithDefaults()
		if !slices.Contains(distinct, r) {
			distinct = append(distinct, r)
		}
	}
	return distinct, nil
}

// plan returns the call that decides about these rules.
func (l *Limiter) plan(prefix, owner, verb string, cost int, rules []Rule) redisscript.Call {
	const few = 4 // number of rules whose keys and numbers need no allocation
	names, keys, args := make([]string, 0, few), make([]string, 0, few), append(make([]any, 0, 1+8*few), verb)
	weight, slot := callWeight, ""
	for i, r := range rules {
		if i == 0 || r.Tag != rules[i-1].Tag {
			slot = prefix + slotOf(owner+r.Tag)
		}
		p, charged := r.Limit.program(), chargeable(r.Limit, cost)
		names, keys = append(names, p.name), append(keys, slot+keyOf(r))
		args = append(append(args, p.name, charged), p.numbers(r.Limit, charged)...)
		weight += r.Limit.weight()
	}
	c := l.scripts.of(names).Call(keys, args...)
	c.Weight = weight
	if verb == refund {
		c.Once = true
		c.Weight *= 2 // it peeks afterwards
	}
	return c
}

// run runs a call when its owner may use Redis.
func (l *Limiter) run(ctx context.Context, owner string, c redisscript.Call) ([]int64, error) {
	if l.parts != nil {
		wait, cancel := context.WithTimeoutCause(ctx, l.wait, ErrBusy)
		defer cancel()
		loan, err := l.parts.Acquire(wait, owner, int64(c.Weight))
		if err != nil {
			return nil, context.Cause(wait)
		}
		defer loan.Release()
	}
	answer, err := l.redis.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return answer, nil
}

// chargeable bounds a cost that is never allowed, so that no arithmetic overflows.
func chargeable(l Limit, cost int) int { return min(cost, l.capacity()+1) }

// read turns a script's answer into a decision.
func read(cost int, rules []Rule, answer []int64) (Decision, error) {
	if len(answer) != answerSize*len(rules) {
		return Decision{}, fmt.Errorf("%w: %d numbers in the answer for %d limits", ErrUnavailable, len(answer), len(rules))
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

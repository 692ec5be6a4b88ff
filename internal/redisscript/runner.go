// Package redisscript runs scripts in Redis, and detects failures of Redis for its callers.
//
// # Purposes
//
// The quota cache, the limits of callers, the takes of tenants, the pace of channels and the queue have a [Runner]
// each, with connections, a time-out and a cooldown of its own. If Redis is too slow for one purpose, or refuses it,
// the others go on.
//
// # One exchange for many calls
//
// A call of [Runner.Run] is sent at once while fewer than two exchanges are under way. Calls that arrive meanwhile
// are sent together in the next exchange, up to [MaxWeight].
//
// # Cooldown
//
// When an exchange fails, the server is left alone for the cooldown: every call returns [ErrDown] at once. So a Redis
// that hangs delays a few callers in a second, and not all of them. The next exchange after the cooldown shows
// whether Redis is back. Errors of a single key, like WRONGTYPE, do not begin a cooldown; neither does TRYAGAIN, which a
// cluster answers while it moves the keys of a call.
//
// # Recovery
//
// Redis knows a script by its hash, and forgets it in a restart, a failover or a SCRIPT FLUSH. A call that is
// answered with NOSCRIPT has done nothing; it is sent again in a second exchange, with the text of its script.
//
// The client of a cluster asks which node has which keys once a minute, and when a node sends it elsewhere. A node that is
// lost does not. So after a failure the runner has the client ask again, and the replica that took over is found at once.
package redisscript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// MaxWeight bounds the calls of one exchange: together they keep Redis for 2 ms, unless a single call takes longer.
const MaxWeight = 2000

// ErrDown is returned during the cooldown after a failure.
var ErrDown = errors.New("redis: it failed a moment ago")

// Runner asks Redis for one purpose. It is safe for concurrent use.
type Runner struct {
	rdb     redisclient.Client
	purpose string
	cfg     Config
	group   groupcommit.Group[Call, *redis.IntSliceCmd]

	until   atomic.Int64 // Unix nanoseconds: the end of the cooldown
	failing atomic.Bool  // the last exchange failed
}

// Config holds the optional settings of a [Runner].
type Config struct {
	Installation  Installation     // the owner of the keys
	Timeout       time.Duration    // of one exchange; 0: DefaultTimeout
	Cooldown      time.Duration    // 0: 1 s
	FirstCooldown time.Duration    // after the first of several failures; 0: Cooldown
	OnError       func(error)      // gets every failed exchange, and every call that failed alone; nil: ignored
	Observe       func(calls int)  // gets the number of calls in each exchange of Run; nil: ignored
	Now           func() time.Time // for the cooldown; nil: time.Now
}

// DefaultTimeout is the default time-out of an exchange.
const DefaultTimeout = 250 * time.Millisecond

// New returns a runner that uses rdb, which the caller closes. The purpose begins its errors.
func New(rdb redisclient.Client, purpose string, cfg Config) *Runner {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.Cooldown = cmp.Or(cfg.Cooldown, time.Second)
	cfg.FirstCooldown = cmp.Or(cfg.FirstCooldown, cfg.Cooldown)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Runner{rdb: rdb, purpose: purpose, cfg: cfg}
	r.group = groupcommit.Group[Call, *redis.IntSliceCmd]{
		Parallel:  2,
		Weight:    func(c Call) int { return c.Weight },
		MaxWeight: MaxWeight,
		Observe:   cfg.Observe,
		Run: func(ctx context.Context, calls []Call) ([]*redis.IntSliceCmd, error) {
			return r.exchange(ctx, calls), nil
		},
	}
	return r
}

// Prefix is the beginning of the names of all keys. The error is [ErrUnnamed].
func (r *Runner) Prefix() (string, error) { return r.cfg.Installation.Prefix() }

// Run runs a call, together with other callers' calls, and returns the answer of its script. Once it is sent, ctx does
// not end it. The error is [ErrDown], ctx.Err(), or an error of Redis.
func (r *Runner) Run(ctx context.Context, c Call) ([]int64, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	if c.Once {
		return r.exchange(context.Background(), []Call{c})[0].Result()
	}
	cmd, _ := r.group.Do(c)
	return cmd.Result()
}

// RunAll runs calls in an exchange of their own, and returns the answer of each script. If several fail, it returns the
// first error.
func (r *Runner) RunAll(ctx context.Context, calls ...Call) ([][]int64, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	answers := make([][]int64, len(calls))
	for i, cmd := range r.exchange(ctx, calls) {
		var err error
		if answers[i], err = cmd.Result(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// Pipeline sends the commands that add puts into the pipeline, without a script, in an exchange of their own.
func (r *Runner) Pipeline(ctx context.Context, add func(context.Context, redis.Pipeliner)) error {
	if err := r.ready(ctx); err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	pipe := r.rdb.Pipeline()
	add(timed, pipe)
	_, err := pipe.Exec(timed)
	r.ended(ctx, err)
	return err
}

// Left returns the remaining cooldown.
func (r *Runner) Left() time.Duration {
	until := r.until.Load()
	if until == 0 {
		return 0
	}
	return max(time.Duration(until-r.cfg.Now().UnixNano()), 0)
}

// Fail begins a cooldown, and reports err. The runner does so by itself; this is for failures that it does not see.
func (r *Runner) Fail(err error) {
	cooldown := r.cfg.FirstCooldown
	if r.failing.Swap(true) {
		cooldown = r.cfg.Cooldown
	}
	r.until.Store(r.cfg.Now().Add(cooldown).UnixNano())
	redisclient.Reload(r.rdb)
	r.report(err)
}

func (r *Runner) report(err error) {
	if r.cfg.OnError != nil {
		r.cfg.OnError(fmt.Errorf("%s: %w", r.purpose, err))
	}
}

func (r *Runner) ready(ctx context.Context) error {
	if r.Left() > 0 {
		return ErrDown
	}
	return ctx.Err()
}

// ended records the end of an exchange with this error of the server. A caller that gave up is no failure of the
// server.
func (r *Runner) ended(ctx context.Context, failure error) {
	switch {
	case ctx.Err() != nil:
	case failure != nil:
		r.Fail(failure)
	case r.failing.Load():
		r.failing.Store(false)
	}
}

// ErrUnnamed is returned until Postgres has returned the name of this installation.
var ErrUnnamed = errors.New("redis: the installation has no name yet, because Postgres has not answered")

// Installation returns the name of the database: a few letters and digits that are unique to it. Several installations
// can share one Redis, because the name is part of all their keys and queues. It is unknown until Postgres has answered
// once. A nil Installation means that there is only one.
type Installation func() (name string, known bool)

// Prefix returns the prefix of all keys. The error is [ErrUnnamed].
func (i Installation) Prefix() (string, error) { return i.named("sq:", ":") }

// Queue returns the prefix of all queues. The error is [ErrUnnamed].
func (i Installation) Queue() (string, error) { return i.named("push-", "-") }

func (i Installation) named(before, after string) (string, error) {
	if i == nil {
		return before, nil
	}
	name, known := i()
	if !known {
		return "", ErrUnnamed
	}
	return before + name + after, nil
}

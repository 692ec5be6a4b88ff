package ratelimit

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// run runs a call when it is its owner's turn, together with those of others.
// After Redis failed it is left alone for a moment, so that its absence costs
// most callers no time, and is told of once.
func (l *Limiter) run(ctx context.Context, owner string, c call) ([]int64, error) {
	if l.parts != nil {
		wait, cancel := context.WithTimeoutCause(ctx, l.cfg.Wait, ErrBusy)
		defer cancel()
		loan, err := l.parts.Acquire(wait, owner, int64(c.weight))
		if err != nil {
			return nil, context.Cause(wait)
		}
		defer loan.Release()
	}
	if l.cfg.Now().UnixNano() < l.downUntil.Load() {
		return nil, ErrUnavailable
	}
	answer, err := l.ask(c)
	if err == nil {
		return answer, nil
	}
	if !ofOneCall(err) {
		l.downUntil.Store(l.cfg.Now().Add(l.cfg.Pause).UnixNano())
	}
	err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	if l.cfg.OnError != nil {
		l.cfg.OnError(err)
	}
	return nil, err
}

func (l *Limiter) ask(c call) ([]int64, error) {
	if c.once {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
		defer cancel()
		return pipeline(ctx, l.rdb, []call{c})[0].Result()
	}
	cmd, _ := l.calls.Do(c)
	return cmd.Result()
}

// ofOneCall reports whether others may have more luck: a script failed over what
// stands at its keys. Whatever else Redis says it will say to everybody.
func ofOneCall(err error) bool {
	for _, prefix := range []string{"WRONGTYPE", "user_script", "Error running script", "CROSSSLOT"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// call is one run of a script.
type call struct {
	script *script
	args   []any // of EVALSHA, with that word
	weight int   // microseconds of Redis' time
	once   bool  // it must not be sent again if its reply is lost
}

// withText is the call with the text of its script.
func (c call) withText() call {
	c.args = append([]any{"eval", c.script.text}, c.args[2:]...)
	return c
}

// once is a command that the client does not send again.
type once struct{ *redis.IntSliceCmd }

func (once) NoRetry() bool { return true }

// pipeline runs calls in one exchange with Redis. Scripts that Redis does not
// know, after a restart or a flush, are sent along in a second one: they have
// done nothing in the first. Every result has its own error.
func pipeline(ctx context.Context, rdb redis.UniversalClient, calls []call) []*redis.IntSliceCmd {
	cmds := exchange(ctx, rdb, calls)
	var unknown []int
	var again []call
	for i, c := range calls {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			unknown, again = append(unknown, i), append(again, c.withText())
		}
	}
	if len(again) > 0 {
		for n, cmd := range exchange(ctx, rdb, again) {
			cmds[unknown[n]] = cmd
		}
	}
	return cmds
}

// exchange sends calls together.
func exchange(ctx context.Context, rdb redis.UniversalClient, calls []call) []*redis.IntSliceCmd {
	cmds := make([]*redis.IntSliceCmd, len(calls))
	for i, c := range calls {
		cmds[i] = redis.NewIntSliceCmd(ctx, c.args...)
	}
	switch {
	case len(cmds) > 1:
		pipe := rdb.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx)
	case calls[0].once:
		_ = rdb.Process(ctx, once{cmds[0]})
	default:
		_ = rdb.Process(ctx, cmds[0])
	}
	return cmds
}

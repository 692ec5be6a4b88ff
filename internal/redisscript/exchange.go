package redisscript

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// exchange sends calls together within the time-out. Every result has its own error.
func (r *Runner) exchange(ctx context.Context, calls []Call) []*redis.IntSliceCmd {
	timed, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	cmds := r.send(timed, calls)
	var unknown []int
	var again []Call
	for i, c := range calls {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			unknown, again = append(unknown, i), append(again, c.withText())
		}
	}
	if len(again) > 0 {
		for n, cmd := range r.send(timed, again) {
			cmds[unknown[n]] = cmd
		}
	}
	var failure error
	for _, cmd := range cmds {
		switch err := cmd.Err(); {
		case err == nil:
		case ofOneCall(err):
			r.report(err)
		default:
			failure = err
		}
	}
	r.ended(ctx, failure)
	return cmds
}

// once is a command that the client does not send again.
type once struct{ *redis.IntSliceCmd }

func (once) NoRetry() bool { return true }

func (r *Runner) send(ctx context.Context, calls []Call) []*redis.IntSliceCmd {
	cmds := make([]*redis.IntSliceCmd, len(calls))
	for i, c := range calls {
		cmds[i] = redis.NewIntSliceCmd(ctx, c.words...)
	}
	switch {
	case len(cmds) > 1:
		pipe := r.rdb.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			for _, cmd := range cmds { // the client leaves them without an error if Redis refused the connection
				if cmd.Err() == nil && cmd.Val() == nil {
					cmd.SetErr(err)
				}
			}
		}
	case calls[0].Once:
		_ = r.rdb.Process(ctx, once{cmds[0]})
	default:
		_ = r.rdb.Process(ctx, cmds[0])
	}
	return cmds
}

// ofOneCall reports whether the error concerns one call only: the value of its key, or its keys together, if a cluster
// has moved only some of them. All other errors concern the server.
func ofOneCall(err error) bool {
	for _, prefix := range []string{"WRONGTYPE", "user_script", "Error running script", "CROSSSLOT", "TRYAGAIN"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

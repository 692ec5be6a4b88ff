package quota

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/reserve.lua
var reserveLua string

//go:embed lua/fill.lua
var fillLua string

//go:embed lua/change.lua
var changeLua string

//go:embed lua/skip.lua
var skipLua string

var (
	reserveScript = redis.NewScript(reserveLua)
	fillScript    = redis.NewScript(fillLua)
	changeScript  = redis.NewScript(changeLua)
	skipScript    = redis.NewScript(skipLua)
)

// call is one run of a script. Every script can be run twice with the same
// outcome, since a lost reply makes go-redis run it again.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
	weight int // about the microseconds that it takes of Redis' time, at most
}

// maxPipeline bounds the weight of the calls that are run together, so that no
// number of them takes Redis nearly as long as anybody waits for it.
const maxPipeline = 5000

// weight is that of a script which looks at so many bookings.
func weight(bookings int) int { return 20 + min(bookings, maxPipeline) }

// pipeline runs calls in one exchange with Redis. Scripts that Redis does not
// know, after a restart or a flush, are sent along in a second one. Each result
// has its own error.
func pipeline(ctx context.Context, rdb redis.UniversalClient, calls []call) []*redis.Cmd {
	pipe := rdb.Pipeline()
	cmds, unknown := make([]*redis.Cmd, len(calls)), []int(nil)
	for i, c := range calls {
		cmds[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	for i := range calls {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return cmds
	}
	for _, i := range unknown {
		cmds[i] = calls[i].script.Eval(ctx, pipe, calls[i].keys, calls[i].args...)
	}
	_, _ = pipe.Exec(ctx)
	return cmds
}

// ofOneKey reports whether others may have more luck: a script failed over what
// stands at its keys. Whatever else Redis says it will say to everybody.
func ofOneKey(err error) bool {
	return redis.HasErrorPrefix(err, "WRONGTYPE") || redis.HasErrorPrefix(err, "user_script") || redis.HasErrorPrefix(err, "Error running script")
}

package quota

import (
	"context"
	_ "embed"
	"fmt"

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
}

// pipeline runs calls in one exchange with Redis. A script that Redis does not
// know, after a restart or a flush, is sent along.
func pipeline(ctx context.Context, rdb redis.UniversalClient, calls []call) ([]*redis.Cmd, error) {
	pipe := rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
	}
	if _, err := pipe.Exec(ctx); err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return nil, fmt.Errorf("run scripts: %w", err)
	}
	for i, c := range calls {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			cmds[i] = c.script.Eval(ctx, rdb, c.keys, c.args...)
		}
	}
	return cmds, nil
}

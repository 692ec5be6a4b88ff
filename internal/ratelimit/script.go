package ratelimit

import (
	"context"
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var files embed.FS

// file returns the text of one part of a script.
func file(name string) string {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded, as any test shows
	}
	return string(text)
}

// scripts holds one script for each set of algorithms that was asked for, so
// that a lone limit runs a small one.
type scripts struct {
	head string
	made sync.Map // the names of its programs, sorted, with a blank between → *redis.Script
}

// of returns the script that knows these programs.
func (s *scripts) of(names []string) *redis.Script {
	if len(names) > 1 {
		slices.Sort(names)
		names = slices.Compact(names)
	}
	set := strings.Join(names, " ")
	if made, ok := s.made.Load(set); ok {
		return made.(*redis.Script)
	}
	parts := []string{s.head}
	for _, name := range names {
		parts = append(parts, file(name))
	}
	made, _ := s.made.LoadOrStore(set, redis.NewScript(strings.Join(append(parts, file("tail")), "\n")))
	return made.(*redis.Script)
}

// call is one run of a script.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
}

// pipeline runs calls in one exchange with Redis. Scripts that Redis does not
// know, after a restart or a flush, are sent along in a second one: they have
// done nothing in the first. Every result has its own error.
func pipeline(ctx context.Context, rdb redis.UniversalClient, calls []call) []*redis.Cmd {
	cmds, unknown := make([]*redis.Cmd, len(calls)), []int(nil)
	pipe := rdb.Pipeline()
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

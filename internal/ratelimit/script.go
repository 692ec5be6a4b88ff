package ratelimit

import (
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/sendquota/sendquota/internal/redisscript"
)

//go:embed lua/*.lua
var files embed.FS

// file returns the text of one part of a script.
func file(name string) string {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// The verbs of a script.
const (
	take   = "take"
	peek   = "peek"
	refund = "refund"
	reset  = "reset"
)

// scripts holds one script for each set of algorithms in use, so that a single limit runs a small one.
type scripts struct {
	file func(name string) string // reads their parts
	made sync.Map                 // the sorted names of its programs, with a blank between → *redisscript.Script
}

// of returns the script with these programs.
func (s *scripts) of(names []string) *redisscript.Script {
	if len(names) > 1 {
		slices.Sort(names)
		names = slices.Compact(names)
	}
	set := strings.Join(names, " ")
	if made, ok := s.made.Load(set); ok {
		return made.(*redisscript.Script)
	}
	parts := []string{s.file("head")}
	for _, name := range names {
		parts = append(parts, s.file(name))
	}
	made, _ := s.made.LoadOrStore(set, redisscript.NewScript(strings.Join(append(parts, s.file("tail")), "\n")))
	return made.(*redisscript.Script)
}

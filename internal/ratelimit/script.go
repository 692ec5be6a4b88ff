package ratelimit

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/binary"
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

// TagOf returns the part of a name that determines its slot in a Redis Cluster: the text between the first { and the
// next }, if it is not empty, or else the whole name.
func TagOf(name string) string {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return name
}

// slotOf returns the part of a key that determines its slot in a cluster. Like the rest, it has a fixed size, and does
// not contain the name.
func slotOf(name string) string {
	h := sha256.Sum256([]byte(name))
	return "limit:{" + base64.RawURLEncoding.EncodeToString(h[:16]) + "}:"
}

// keyOf returns the rest of a key. It differs for every rule: with another limit, a subject starts afresh.
func keyOf(r Rule) string {
	b := make([]byte, 0, 128)
	b = append(append(b, r.Limit.program().kind...), 0)
	for _, n := range []int64{int64(r.Limit.Limit), int64(r.Limit.Per), int64(r.Limit.Burst), int64(r.Limit.Precision)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.Sum256(append(b, r.Subject...))
	return base64.RawURLEncoding.EncodeToString(h[:12])
}

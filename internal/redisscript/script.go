package redisscript

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script. It answers a list of whole numbers.
type Script struct{ text, hash string }

// NewScript returns the script with this text.
func NewScript(text string) *Script {
	hash := sha1.Sum([]byte(text)) // Redis finds the script by its hash
	return &Script{text, hex.EncodeToString(hash[:])}
}

// Call is one run of a script. Unless it is sent once, a lost reply makes the client send it again, so the script
// must be able to run twice.
type Call struct {
	Weight int  // how long it keeps Redis, at most, in microseconds
	Once   bool // send it once, and by itself

	script *Script
	words  []any // of the command EVALSHA
}

// Call returns a run of the script with these keys, which must be in one slot of a cluster, and these arguments.
func (s *Script) Call(keys []string, args ...any) Call {
	words := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", s.hash, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	return Call{script: s, words: append(words, args...)}
}

// withText sends the text of the script along, for a Redis that does not know it.
func (c Call) withText() Call {
	c.words[0], c.words[1] = "eval", c.script.text
	return c
}

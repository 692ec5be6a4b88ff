package ratelimit

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
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

// The verbs of a script.
const (
	take   = "take"
	peek   = "peek"
	refund = "refund"
	reset  = "reset"
)

// script is what Redis runs, and the hash by which it remembers it.
type script struct{ text, hash string }

// scripts holds one script for each set of algorithms that was asked for, so
// that a lone limit runs a small one.
type scripts struct {
	file func(name string) string // reads their parts
	made sync.Map                 // the names of its programs, sorted, with a blank between → *script
}

// of returns the script that knows these programs.
func (s *scripts) of(names []string) *script {
	if len(names) > 1 {
		slices.Sort(names)
		names = slices.Compact(names)
	}
	set := strings.Join(names, " ")
	if made, ok := s.made.Load(set); ok {
		return made.(*script)
	}
	parts := []string{s.file("head")}
	for _, name := range names {
		parts = append(parts, s.file(name))
	}
	text := strings.Join(append(parts, s.file("tail")), "\n")
	hash := sha1.Sum([]byte(text)) // Redis' choice
	made, _ := s.made.LoadOrStore(set, &script{text, hex.EncodeToString(hash[:])})
	return made.(*script)
}

package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Entry is one configured channel with its name and its retry rules.
type Entry struct {
	Name    string
	Channel Channel
	Retry   push.Retry
	Speed   pace.Speed         // of the provider; with Most, in segments of text messages
	Shares  push.Shares        // of the service levels while pushes wait; zero: [push.DefaultShares]
	Gone    suppression.Reason // why an address that the provider reports as unregistered is suppressed; "": it is not
	Version int64              // of a tenant's own channel: it grows with each change
}

// Set is the configured channels in their configured order. It never changes, and may be read concurrently.
type Set struct {
	names  []string
	byName map[string]Entry
}

// NewSet returns a set of the entries. It fails if there is none, if one lacks a name, a channel or an attempt, or if
// two share a name.
func NewSet(entries ...Entry) (*Set, error) {
	if len(entries) == 0 {
		return nil, errors.New("channels: at least one is needed")
	}
	s := &Set{byName: make(map[string]Entry, len(entries))}
	for _, e := range entries {
		switch _, taken := s.byName[e.Name]; {
		case e.Name == "":
			return nil, errors.New("channels: a channel has no name")
		case taken:
			return nil, fmt.Errorf("channel %s: the name is used twice", e.Name)
		case e.Channel == nil:
			return nil, fmt.Errorf("channel %s: it has no provider", e.Name)
		case e.Retry.MaxAttempts < 1:
			return nil, fmt.Errorf("channel %s: max_attempts is %d, must be at least 1", e.Name, e.Retry.MaxAttempts)
		}
		s.names = append(s.names, e.Name)
		s.byName[e.Name] = e
	}
	return s, nil
}

// Get returns the channel with that name, and whether there is one.
func (s *Set) Get(name string) (Entry, bool) {
	e, ok := s.byName[name]
	return e, ok
}

// Check returns what the provider behind a channel would certainly refuse. For an unknown channel it returns nil.
func (s *Set) Check(name, to string, message json.RawMessage) invalid.FieldErrors {
	e, ok := s.byName[name]
	if !ok {
		return nil
	}
	return e.Channel.Check(to, message)
}

// Size returns the size of the text that a channel would send, and whether it is a channel of text messages.
func (s *Set) Size(name string, message json.RawMessage) (size sms.Size, is bool) {
	return s.byName[name].Size(message)
}

// Size returns the size of the text that the channel would send, and whether it is a channel of text messages.
func (e Entry) Size(message json.RawMessage) (size sms.Size, is bool) {
	texts, is := e.Channel.(interface {
		Size(message json.RawMessage) sms.Size
	})
	if !is {
		return size, false
	}
	return texts.Size(message), true
}

// Names returns the names of all channels in their configured order.
func (s *Set) Names() []string { return slices.Clone(s.names) }

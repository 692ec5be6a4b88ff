package channel

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// Entry is one configured channel: its name, its way out, and how it tries
// again.
type Entry struct {
	Name    string
	Channel Channel
	Retry   push.Retry
	Speed   pace.Speed // that the provider can take
}

// Set is the configured channels in their configured order. It does not
// change once it is made, and may be read concurrently.
type Set struct {
	entries []Entry
	byName  map[string]Entry
}

// NewSet returns a set of the entries, the default channel first. It fails if
// there is none, if one lacks a name, a channel or an attempt, or if two share
// a name.
func NewSet(entries ...Entry) (*Set, error) {
	if len(entries) == 0 {
		return nil, errors.New("channels: at least one is needed")
	}
	s := &Set{byName: make(map[string]Entry, len(entries))}
	for _, e := range entries {
		if err := s.add(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Set) add(e Entry) error {
	switch _, taken := s.byName[e.Name]; {
	case e.Name == "":
		return errors.New("channels: a channel has no name")
	case taken:
		return fmt.Errorf("channel %s: the name is used twice", e.Name)
	case e.Channel == nil:
		return fmt.Errorf("channel %s: there is no way out behind it", e.Name)
	case e.Retry.MaxAttempts < 1:
		return fmt.Errorf("channel %s: max_attempts is %d, must be at least 1", e.Name, e.Retry.MaxAttempts)
	}
	s.entries = append(s.entries, e)
	s.byName[e.Name] = e
	return nil
}

// Default returns the name of the first channel, which a push takes that names
// none.
func (s *Set) Default() string { return s.entries[0].Name }

// Get returns the channel of that name, and whether there is one.
func (s *Set) Get(name string) (Entry, bool) {
	e, ok := s.byName[name]
	return e, ok
}

// Check says what the provider behind the channel of that name would surely
// refuse; of a channel that there is not, nothing is known.
func (s *Set) Check(name, to string, message json.RawMessage) invalid.FieldErrors {
	e, ok := s.byName[name]
	if !ok {
		return nil
	}
	return e.Channel.Check(to, message)
}

// Names returns the names of all channels in their configured order.
func (s *Set) Names() []string {
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.Name
	}
	return names
}

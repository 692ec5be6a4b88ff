package auditlogs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
)

// maxDifference is the maximum size of a difference in bytes.
const maxDifference = 8 << 10

// Difference lists the members that a change has changed, by name. For texts of messages, addresses, secrets and
// attributes it holds only the fact of the change, not the values.
type Difference map[string]changed

// changed is the change of one member. From is left out if the member had no value, and To if it has none now.
type changed struct {
	From    json.RawMessage `json:"from,omitempty"`
	To      json.RawMessage `json:"to,omitempty"`
	Changed any             `json:"changed,omitempty"` // for hidden values: true, or the names of the changed members of an object
}

// Show adds a member with its values, if they differ.
func (d Difference) Show(name string, from, to any) {
	was, is := TextOf(from), TextOf(to)
	if !bytes.Equal(was, is) {
		d[name] = changed{From: was, To: is}
	}
}

// Hide adds a member without its values, if they differ.
func (d Difference) Hide(name string, from, to any) {
	if !bytes.Equal(TextOf(from), TextOf(to)) {
		d[name] = changed{Changed: true}
	}
}

// HideMembers adds an object with the names of its members that differ, without their values.
func (d Difference) HideMembers(name string, from, to json.RawMessage) {
	was, is := membersOf(from), membersOf(to)
	both := maps.Clone(was)
	maps.Copy(both, is)
	var names []string
	for _, one := range slices.Sorted(maps.Keys(both)) {
		if !reflect.DeepEqual(was[one], is[one]) {
			names = append(names, one)
		}
	}
	if len(names) > 0 {
		d[name] = changed{Changed: names}
	}
}

// membersOf decodes an object. A missing object has no members.
func membersOf(object json.RawMessage) map[string]any {
	members := map[string]any{}
	_ = json.Unmarshal(object, &members) // valid: it was checked before it was stored
	return members
}

// TextOf encodes a value in its canonical form. It returns nil for an empty value.
func TextOf(v any) json.RawMessage {
	if t, ok := v.(time.Time); ok {
		if t.IsZero() {
			return nil
		}
		v = t.UTC().Format(time.RFC3339Nano)
	}
	if raw, ok := v.(json.RawMessage); ok && len(raw) == 0 {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil || slices.Contains([]string{`null`, `""`, `[]`, `{}`}, string(text)) {
		return nil
	}
	return text
}

// MaybeID returns the id, or nil for the zero id.
func MaybeID(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}

// TimeOf returns the time, or the zero time for nil.
func TimeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Text encodes the difference as JSON. It hides the longest values until the text fits maxDifference.
func (d Difference) Text() []byte {
	if d == nil {
		d = Difference{}
	}
	text, err := json.Marshal(d)
	for err == nil && len(text) > maxDifference {
		longest := slices.MaxFunc(slices.Sorted(maps.Keys(d)), func(a, b string) int { return cmp.Compare(d[a].size(), d[b].size()) })
		if d[longest].Changed == true {
			return []byte(`{}`) // too many members: the text is too long without any value
		}
		d[longest] = changed{Changed: true}
		text, err = json.Marshal(d)
	}
	if err != nil {
		return []byte(`{}`)
	}
	return text
}

// size returns the length of the encoded change.
func (c changed) size() int {
	text, _ := json.Marshal(c)
	return len(text)
}

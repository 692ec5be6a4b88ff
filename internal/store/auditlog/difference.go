package auditlog

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

// maxDifference is how many bytes a difference has, at most.
const maxDifference = 8 << 10

// Difference is what a change has changed, by the names of members. It has no texts of messages, no addresses, no secrets
// and no attributes: of these it says that they have changed.
type Difference map[string]changed

// changed is what became of one member. From or To is left out where there was, or is, nothing.
type changed struct {
	From    json.RawMessage `json:"from,omitempty"`
	To      json.RawMessage `json:"to,omitempty"`
	Changed any             `json:"changed,omitempty"` // true, or the names of its own members
}

// Show adds a member whose values may be seen, if they differ.
func (d Difference) Show(name string, from, to any) {
	was, is := TextOf(from), TextOf(to)
	if !bytes.Equal(was, is) {
		d[name] = changed{From: was, To: is}
	}
}

// Hide adds a member whose values may not be seen, if they differ.
func (d Difference) Hide(name string, from, to any) {
	if !bytes.Equal(TextOf(from), TextOf(to)) {
		d[name] = changed{Changed: true}
	}
}

// HideMembers adds an object of which only the names of the members may be seen that differ.
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

// membersOf reads an object; one that is not there has no members.
func membersOf(object json.RawMessage) map[string]any {
	members := map[string]any{}
	_ = json.Unmarshal(object, &members) // it was checked when it was stored
	return members
}

// TextOf writes a value in one form, and nothing for an empty one.
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

// MaybeID is nil for no id.
func MaybeID(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}

// TimeOf is the zero time for none.
func TimeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Text writes the difference. Where it is too long, the longest values are hidden.
func (d Difference) Text() []byte {
	if d == nil {
		d = Difference{}
	}
	text, err := json.Marshal(d)
	for err == nil && len(text) > maxDifference {
		longest := slices.MaxFunc(slices.Sorted(maps.Keys(d)), func(a, b string) int { return cmp.Compare(d[a].size(), d[b].size()) })
		if d[longest].Changed == true {
			return []byte(`{}`) // it has too many members
		}
		d[longest] = changed{Changed: true}
		text, err = json.Marshal(d)
	}
	if err != nil {
		return []byte(`{}`)
	}
	return text
}

func (c changed) size() int {
	text, _ := json.Marshal(c)
	return len(text)
}

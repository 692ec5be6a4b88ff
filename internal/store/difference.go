package store

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

// difference is what a change has changed, by the names of members. It has no texts of messages, no addresses, no secrets
// and no attributes: of these it says that they have changed.
type difference map[string]changed

// changed is what became of one member. From or To is left out where there was, or is, nothing.
type changed struct {
	From    json.RawMessage `json:"from,omitempty"`
	To      json.RawMessage `json:"to,omitempty"`
	Changed any             `json:"changed,omitempty"` // true, or the names of its own members
}

// show adds a member whose values may be seen, if they differ.
func (d difference) show(name string, from, to any) {
	was, is := textOf(from), textOf(to)
	if !bytes.Equal(was, is) {
		d[name] = changed{From: was, To: is}
	}
}

// hide adds a member whose values may not be seen, if they differ.
func (d difference) hide(name string, from, to any) {
	if !bytes.Equal(textOf(from), textOf(to)) {
		d[name] = changed{Changed: true}
	}
}

// hideMembers adds an object of which only the names of the members may be seen that differ.
func (d difference) hideMembers(name string, from, to json.RawMessage) {
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

// textOf writes a value in one form, and nothing for an empty one.
func textOf(v any) json.RawMessage {
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

// maybeID is nil for no id.
func maybeID(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}

// timeOf is the zero time for none.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// text writes the difference. Where it is too long, the longest values are hidden.
func (d difference) text() []byte {
	if d == nil {
		d = difference{}
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

package liquid

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object. Loops visit its members in their original order.
type object struct {
	names  []string
	values map[string]any
}

func (o *object) set(name string, v any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

// objectOf returns a map as an object, with sorted members.
func objectOf(of map[string]any) *object {
	o := object{slices.Sorted(maps.Keys(of)), make(map[string]any, len(of))}
	for name, v := range of {
		o.values[name] = plain(v)
	}
	return &o
}

// MarshalJSON writes the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	var out strings.Builder
	for i, name := range o.names {
		key, _ := json.Marshal(name) // cannot fail for a text
		v, err := json.Marshal(o.values[name])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%c%s:%s", "{,"[min(i, 1)], key, v)
	}
	if len(o.names) == 0 {
		return []byte("{}"), nil
	}
	return []byte(out.String() + "}"), nil
}

// Variables reads JSON objects as the variables of [Message.Render]. Objects in them keep the order of their members,
// and numbers their digits. If several members have the same name, the last one counts. An empty text and null have
// none.
func Variables(texts ...json.RawMessage) (map[string]any, error) {
	all := map[string]any{}
	for i, text := range texts {
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		one, err := variables(text)
		if err != nil {
			return nil, fmt.Errorf("variables %d: %w", i+1, err)
		}
		maps.Copy(all, one)
	}
	return all, nil
}

func variables(text json.RawMessage) (map[string]any, error) {
	d := jsontext.NewDecoder(strings.NewReader(string(text)), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := decode(d)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, errors.New("must be an object")
	}
	return o.values, nil
}

// decode reads the next value.
func decode(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return plain(json.Number(t.String())), nil
	case '[':
		all := []any{}
		for d.PeekKind() != ']' {
			v, err := decode(d)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		_, err := d.ReadToken()
		return all, err
	}
	o := &object{values: map[string]any{}}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := t.String()
		v, err := decode(d)
		if err != nil {
			return nil, err
		}
		o.set(name, v)
	}
	_, err = d.ReadToken()
	return o, err
}

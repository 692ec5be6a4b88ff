package liquid

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A value of an expression is nil, a bool, an int, a float64, a string, a markup, a []any, an *object, a span, a *position, a
// special, or unknown.

// markup is text that is not escaped in HTML.
type markup string

// special is a word of the language that equals what has nothing in it.
type special string

const (
	blank = special("blank") // nil, false, spaces, an empty list
	empty = special("empty") // an empty text, an empty list
)

// span is a range of whole numbers.
type span struct{ from, to int }

// len is how many numbers are in a range, up to a number that nothing counts to.
func (s span) len() int {
	if s.to < s.from {
		return 0
	}
	return int(min(uint64(s.to)-uint64(s.from), 1<<40)) + 1
}

// plain is a value of JSON with the numbers that expressions know.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") { // else it is an id, or the like
			return f
		}
		return v.String()
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	case map[string]any:
		return objectOf(v)
	}
	return v
}

// textOf is a value as a message has it.
func textOf(v any) string {
	switch v := v.(type) {
	case nil, special, *position, unknown:
		return ""
	case string:
		return v
	case markup:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case []any:
		var all strings.Builder
		for _, one := range v {
			all.WriteString(textOf(one))
		}
		return all.String()
	case *object:
		text, _ := json.Marshal(v) // it came from JSON
		return string(text)
	case span:
		return fmt.Sprintf("%d..%d", v.from, v.to)
	}
	return fmt.Sprint(v)
}

// kindOfValue is what a value is, in a fault. The value itself is not told: who reads the fault may not know it.
func kindOfValue(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case []any, span:
		return "a list"
	case *object, *position:
		return "an object"
	case string, markup:
		if _, ok := number(v); !ok {
			return "a text that is no number"
		}
		return "a text"
	case bool:
		return "true or false"
	}
	return "a number"
}

// unmarked is a value whose text is a string.
func unmarked(v any) any {
	if text, ok := v.(markup); ok {
		return string(text)
	}
	return v
}

func truthy(v any) bool { return v != nil && v != false }

// part is what a value has under a name, or at a place. Without that it is unknown, by the text of the whole path.
func (m *machine) part(v, key any, text string) (any, error) {
	switch v := v.(type) {
	case *object:
		if one, ok := v.values[textOf(key)]; ok {
			return one, nil
		}
	case *position:
		if one, ok := v.part(textOf(key)); ok {
			return one, nil
		}
		return unknown{text}, nil
	}
	if name, ok := key.(string); ok {
		if one, ok := property(v, name); ok {
			return one, nil
		}
	}
	all := itemsOf(v)
	switch v.(type) {
	case []any, span:
		if n, ok := number(key); ok {
			if i, ok := n.(int); ok {
				if i < 0 {
					i += all.n
				}
				if i >= 0 && i < all.n {
					return all.at(i), nil
				}
			}
		}
	}
	return unknown{text}, nil
}

// property is size, first, or last.
func property(v any, name string) (any, bool) {
	switch name {
	case "size":
		n, ok := length(v)
		return n, ok
	case "first", "last":
		return end(v, name == "last")
	}
	return nil, false
}

// length is how many items a list or an object has, or characters a text.
func length(v any) (int, bool) {
	switch v := v.(type) {
	case string, markup:
		return len([]rune(textOf(v))), true
	case []any, *object, span:
		return itemsOf(v).n, true
	}
	return 0, false
}

// end is the first or the last item. An object has no last one.
func end(v any, last bool) (any, bool) {
	switch v := v.(type) {
	case string, markup:
		all := []rune(textOf(v))
		switch {
		case len(all) == 0:
			return "", true
		case last:
			return string(all[len(all)-1:]), true
		}
		return string(all[:1]), true
	case *object:
		if last {
			return nil, false
		}
	}
	all := itemsOf(v)
	switch {
	case all.n == 0:
		return nil, false
	case last:
		return all.at(all.n - 1), true
	}
	return all.at(0), true
}

// same reports whether two values are equal. If counted, a text that is a number equals that number: a cell of a list is a text.
func (m *machine) same(a, b any, counted bool) (bool, error) {
	for range 2 {
		if s, ok := a.(special); ok {
			return s.is(b), nil
		}
		a, b = b, unmarked(a)
	}
	if _, ok := a.(span); ok && reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false, nil
	}
	_, textA := a.(string)
	_, textB := b.(string)
	x, countsA := number(a)
	y, countsB := number(b)
	if countsA && countsB && (!textA && !textB || counted && textA != textB) {
		return order(x, y) == 0, nil
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for i := range a {
			if err := m.step(1); err != nil {
				return false, err
			}
			if same, err := m.same(a[i], b[i], false); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *object:
		b, ok := b.(*object)
		if !ok || len(a.names) != len(b.names) {
			return false, nil
		}
		for _, name := range a.names {
			if err := m.step(1); err != nil {
				return false, err
			}
			other, ok := b.values[name]
			if !ok {
				return false, nil
			}
			if same, err := m.same(a.values[name], other, false); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	switch b.(type) {
	case []any, *object:
		return false, nil
	}
	return a == b, nil
}

// is reports whether a value is blank, or empty.
func (s special) is(v any) bool {
	switch v := v.(type) {
	case special:
		return v == s
	case nil:
		return s == blank
	case bool:
		return s == blank && !v
	case string, markup:
		text := textOf(v)
		if s == blank {
			text = strings.TrimSpace(text)
		}
		return text == ""
	case []any, *object:
		return itemsOf(v).n == 0
	}
	return false
}

// compared is the order of two values, if they have one. A text that is a number has that of the number, beside a number; another
// text is a fault there.
func compared(a, b any) (sign int, ok bool, err error) {
	a, b = unmarked(a), unmarked(b)
	textA, isA := a.(string)
	textB, isB := b.(string)
	if isA && isB {
		return strings.Compare(textA, textB), true, nil
	}
	if kindOf(a) != 'n' && kindOf(b) != 'n' {
		return 0, false, nil
	}
	x, okA := number(a)
	y, okB := number(b)
	switch {
	case okA && okB:
		return order(x, y), true, nil
	case isA || isB:
		return 0, false, errMixed
	}
	return 0, false, nil
}

var errMixed = errors.New("a text that is no number can not be compared with a number")

// contains reports whether a text has another in it, a list an item, or an object a name.
func (m *machine) contains(v, what any) (bool, error) {
	if !truthy(what) {
		return false, nil
	}
	switch v := v.(type) {
	case string, markup:
		text := textOf(v)
		return strings.Contains(text, textOf(what)), m.read(len(text))
	case *object:
		_, ok := v.values[textOf(what)]
		return ok, nil
	case []any, span:
		all := itemsOf(v)
		for i := range all.n {
			one := all.at(i)
			if err := m.read(min(bytesOf(one), bytesOf(what))); err != nil {
				return false, err
			}
			if same, err := m.same(one, what, false); same || err != nil {
				return same, err
			}
		}
	}
	return false, nil
}

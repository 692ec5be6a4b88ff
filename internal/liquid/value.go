package liquid

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A value of an expression is nil, a bool, an int, a float64, a string, a markup, a []any, an *object, a span, a *position, a
// special, or unknown.

// markup is text that is not escaped in HTML.
type markup string

// special is the constant blank or empty.
type special string

const (
	blank = special("blank") // nil, false, spaces, an empty list
	empty = special("empty") // an empty text, an empty list
)

// span is a range of whole numbers.
type span struct{ from, to int }

// len returns the size of a range, capped at a number that no loop reaches.
func (s span) len() int {
	if s.to < s.from {
		return 0
	}
	return int(min(uint64(s.to)-uint64(s.from), 1<<40)) + 1
}

// plain converts a JSON value to the numbers that expressions use.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") { // others are ids or the like
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

// textOf returns a value as text for the message.
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
		text, _ := json.Marshal(v) // cannot fail: it came from JSON
		return string(text)
	case span:
		return fmt.Sprintf("%d..%d", v.from, v.to)
	}
	return fmt.Sprint(v)
}

// kindOfValue names the kind of a value for an error. The value itself is left out, because the reader may not be
// allowed to see it.
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

// unmarked returns a value with markup as a plain string.
func unmarked(v any) any {
	if text, ok := v.(markup); ok {
		return string(text)
	}
	return v
}

func truthy(v any) bool { return v != nil && v != false }

// part returns the member or item of a value. If there is none, it returns unknown with the text of the whole path.
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

// property returns size, first or last of a value.
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

// length returns the number of items of a list or an object, or of characters of a text.
func length(v any) (int, bool) {
	switch v := v.(type) {
	case string, markup:
		return len([]rune(textOf(v))), true
	case []any, *object, span:
		return itemsOf(v).n, true
	}
	return 0, false
}

// end returns the first or the last item. An object has no last one.
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

package liquid

import (
	"errors"
	"reflect"
	"strings"
)

// same reports whether two values are equal. If counted, a numeric text equals its number, and comparing any other text
// with a number is an error, because a cell of a list is a text.
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
	if counted && (textA && kindOf(b) == 'n' || textB && kindOf(a) == 'n') {
		return false, errMixed
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

// compared returns the order of two values, if they have one. A numeric text compares with a number by its value; any
// other text beside a number is an error.
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

var errMixed = errors.New("a text that is no number cannot be compared with a number")

// contains reports whether a text contains another, a list an item, or an object a name.
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

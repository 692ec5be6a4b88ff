package liquid

import (
	"errors"
	"strings"
)

// member returns the value of an item under a name. ok is false if the item has no members at all.
func member(item, name any) (v any, ok bool, err error) {
	switch item := item.(type) {
	case *object:
		if name == nil {
			return nil, true, nil
		}
		return item.values[textOf(name)], true, nil
	case string, markup:
		if kindOf(name) == 't' && strings.Contains(textOf(item), textOf(name)) {
			return name, true, nil
		}
		return nil, true, nil
	case int, float64:
		if n, ok := item.(int); ok && kindOf(name) == 'n' {
			return numberHas(n, name), true, nil
		}
		return nil, true, errors.New("a number has no members")
	}
	return nil, false, nil
}

// numberHas reports whether two numbers are equal. Shopify's engine tests a bit of the number here, which is useless.
func numberHas(n int, other any) any {
	if order(n, other) == 0 {
		return true
	}
	return nil
}

// matches returns a function that reports whether an item has a member, or has it with a value. none is true if an item
// cannot have members: the filter then returns nil.
func (m *machine) matches(args []any) func(item any) (match, none bool, err error) {
	return func(item any) (bool, bool, error) {
		if err := m.step(1); err != nil {
			return false, false, err
		}
		v, ok, err := member(item, args[0])
		if err != nil || !ok {
			return false, !ok, err
		}
		if len(args) == 1 || args[1] == nil {
			return truthy(v), false, nil
		}
		same, err := m.same(v, args[1], false)
		return same, false, err
	}
}

// matching returns the indexes of the matching items. none is true if the filter returns nil.
func (m *machine) matching(items, args []any, most int) (at []int, none bool, err error) {
	matches := m.matches(args)
	for i, one := range items {
		match, none, err := matches(one)
		if err != nil || none {
			return nil, none, err
		}
		if match {
			if at = append(at, i); len(at) == most {
				break
			}
		}
	}
	return at, false, nil
}

func where(m *machine, v any, args []any) (any, error) {
	items := list(v)
	at, none, err := m.matching(items, args, -1)
	if err != nil || none {
		return nil, err
	}
	made := make([]any, len(at))
	for i, n := range at {
		made[i] = items[n]
	}
	return made, nil
}

func reject(m *machine, v any, args []any) (any, error) {
	items := list(v)
	at, none, err := m.matching(items, args, -1)
	if err != nil || none {
		return nil, err
	}
	made := []any{}
	for i, one := range items {
		if len(at) > 0 && at[0] == i {
			at = at[1:]
			continue
		}
		made = append(made, one)
	}
	return made, nil
}

func find(m *machine, v any, args []any) (any, error) {
	items := list(v)
	at, none, err := m.matching(items, args, 1)
	if err != nil || none || len(at) == 0 {
		return nil, err
	}
	return items[at[0]], nil
}

func findIndex(m *machine, v any, args []any) (any, error) {
	at, none, err := m.matching(list(v), args, 1)
	if err != nil || none || len(at) == 0 {
		return nil, err
	}
	return at[0], nil
}

func has(m *machine, v any, args []any) (any, error) {
	at, none, err := m.matching(list(v), args, 1)
	if err != nil || none {
		return nil, err
	}
	return len(at) > 0, nil
}

package liquid

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

var listFilters = map[string]filter{
	"compact":      {most: 1, do: compact},
	"concat":       {least: 1, most: 1, do: concat},
	"find":         {least: 1, most: 2, do: find},
	"find_index":   {least: 1, most: 2, do: findIndex},
	"first":        {do: func(_ *machine, v any, _ []any) (any, error) { one, _ := end(v, false); return one, nil }},
	"has":          {least: 1, most: 2, do: has},
	"join":         {most: 1, do: join},
	"last":         {do: func(_ *machine, v any, _ []any) (any, error) { one, _ := end(v, true); return one, nil }},
	"map":          {least: 1, most: 1, do: mapped},
	"reject":       {least: 1, most: 2, do: reject},
	"reverse":      {do: reversed},
	"sort":         {most: 1, heavy: 16, do: sorted},
	"sort_natural": {most: 1, heavy: 16, do: sortedNaturally},
	"sum":          {most: 1, do: sum},
	"uniq":         {most: 1, heavy: 16, do: uniq},
	"where":        {least: 1, most: 2, do: where},
}

// list converts a value to a list: nested lists are flattened, and any other value becomes a list of one item.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		if !slices.ContainsFunc(v, isList) {
			return v
		}
		var all []any
		for _, one := range v {
			if isList(one) {
				all = append(all, list(one)...)
			} else {
				all = append(all, one)
			}
		}
		return all
	case span:
		all := make([]any, v.len()) // its length was checked
		for i := range all {
			all[i] = v.from + i
		}
		return all
	}
	return []any{v}
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// named returns a member of each item, or the item itself if there is no name.
func named(items, args []any) ([]any, error) {
	if len(args) == 0 || args[0] == nil {
		return items, nil
	}
	all := make([]any, len(items))
	for i, one := range items {
		v, _, err := member(one, args[0])
		if err != nil {
			return nil, err
		}
		all[i] = v
	}
	return all, nil
}

func mapped(_ *machine, v any, args []any) (any, error) {
	items := list(v)
	if args[0] == nil {
		return make([]any, len(items)), nil
	}
	return named(items, args)
}

func compact(_ *machine, v any, args []any) (any, error) {
	items := list(v)
	keys, err := named(items, args)
	if err != nil {
		return nil, err
	}
	made := []any{}
	for i, one := range items {
		if keys[i] != nil {
			made = append(made, one)
		}
	}
	return made, nil
}

func concat(_ *machine, v any, args []any) (any, error) {
	switch args[0].(type) {
	case []any, span:
	default:
		return nil, errNoList
	}
	a, b := list(v), list(args[0])
	return append(a[:len(a):len(a)], b...), nil
}

func join(_ *machine, v any, args []any) (any, error) {
	items, by := list(v), textAt(args, 0, " ")
	total := 0
	texts := make([]string, len(items))
	for i, one := range items {
		texts[i] = textOf(one)
		if total += len(texts[i]) + len(by); total > maxText+len(by) {
			return nil, errText
		}
	}
	return strings.Join(texts, by), nil
}

func reversed(_ *machine, v any, _ []any) (any, error) {
	made := slices.Clone(list(v))
	slices.Reverse(made)
	return made, nil
}

// sortedBy sorts by a key of each item. Items without it come last.
func sortedBy(v any, args []any, order func(a, b any) (int, error)) (any, error) {
	items := list(v)
	keys, err := named(items, args)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(items))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int {
		a, b := keys[i], keys[j]
		if a == nil || b == nil {
			return cmp.Compare(rank(a), rank(b))
		}
		n, wrong := order(a, b)
		err = cmp.Or(err, wrong)
		return n
	})
	made := make([]any, len(items))
	for i, n := range at {
		made[i] = items[n]
	}
	return made, err
}

func rank(v any) int {
	if v == nil {
		return 1
	}
	return 0
}

func sorted(_ *machine, v any, args []any) (any, error) {
	return sortedBy(v, args, func(a, b any) (int, error) {
		n, ok, err := compared(a, b)
		if err == nil && !ok {
			err = fmt.Errorf("%s cannot be compared with %s", kindOfValue(a), kindOfValue(b))
		}
		return n, err
	})
}

func sortedNaturally(_ *machine, v any, args []any) (any, error) {
	return sortedBy(v, args, func(a, b any) (int, error) {
		return strings.Compare(strings.ToLower(textOf(a)), strings.ToLower(textOf(b))), nil
	})
}

func sum(m *machine, v any, args []any) (any, error) {
	items, err := named(list(v), args)
	if err != nil {
		return nil, err
	}
	total := any(0)
	for _, one := range items {
		if total, err = calculated(total, one, add); err != nil {
			return nil, err
		}
		if err := m.step(1); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// uniq returns a list without repeated items.
func uniq(m *machine, v any, args []any) (any, error) {
	items := list(v)
	keys, err := named(items, args)
	if err != nil {
		return nil, err
	}
	var made []any
	seen, others := map[any]bool{}, []any(nil)
	for i, one := range items {
		key := unmarked(keys[i])
		switch key.(type) {
		case *object, []any:
			known := slices.ContainsFunc(others, func(other any) bool {
				if err == nil {
					err = m.step(1)
				}
				same, wrong := m.same(key, other, false)
				if err == nil {
					err = wrong
				}
				return same
			})
			if err != nil {
				return nil, err
			}
			if known {
				continue
			}
			others = append(others, key)
		default:
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		made = append(made, one)
	}
	return made, nil
}

func jsonOf(v any) (any, error) {
	switch v := v.(type) {
	case markup:
		return jsonOf(string(v))
	case span:
		return jsonOf(list(v))
	case *position, special:
		return jsonOf(nil)
	}
	text, err := json.Marshal(v)
	return string(text), err
}

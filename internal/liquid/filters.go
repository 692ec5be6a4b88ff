package liquid

import (
	"errors"
	"fmt"
)

// filter computes a value from a value.
type filter struct {
	least, most int    // number of arguments
	named       string // the name of its optional named argument
	heavy       int    // steps beyond reading the value, for the value and for each of its items
	do          func(m *machine, v any, args []any) (any, error)
}

// arguments returns the number of arguments of a filter in words.
func (f filter) arguments() string {
	switch {
	case f.most == 0:
		return "no argument"
	case f.least == f.most && f.most == 1:
		return "one argument"
	case f.least == f.most:
		return fmt.Sprintf("%d arguments", f.most)
	}
	return fmt.Sprintf("%d to %d arguments", f.least, f.most)
}

// filters lists all filters.
var filters = func() map[string]filter {
	all := map[string]filter{}
	for _, group := range []map[string]filter{textFilters, listFilters, numberFilters, {
		"date":    {least: 1, most: 1, do: date},
		"default": {most: 1, named: "allow_false"}, // implemented by call, which passes unknown variables to it
		"json":    {do: func(_ *machine, v any, _ []any) (any, error) { return jsonOf(v) }},
		"size":    {do: func(_ *machine, v any, _ []any) (any, error) { n, _ := length(v); return n, nil }},
	}} {
		for name, f := range group {
			all[name] = f
		}
	}
	return all
}()

// apply evaluates the arguments of a filter and applies it. It requires all variables to exist, and bounds the input
// and the result. An error names the variable at the start of the filters.
func (c call) apply(m *machine, v any, of expression) (any, error) {
	if c.name == "default" {
		return c.byDefault(m, v)
	}
	if u, ok := v.(unknown); ok {
		return nil, u.fault()
	}
	if err := m.bound(v, c.filter.heavy); err != nil {
		return nil, err
	}
	args := make([]any, len(c.args))
	for i, arg := range c.args {
		var err error
		if args[i], err = m.need(arg); err != nil {
			return nil, err
		}
		if err := m.bound(args[i], 0); err != nil {
			return nil, err
		}
	}
	made, err := c.filter.do(m, v, args)
	switch {
	case err == nil:
		return made, m.measure(made)
	case errors.Is(err, errText), errors.Is(err, errItems), errors.Is(err, errSteps):
		return nil, err
	}
	if p, ok := of.(path); ok {
		return nil, fmt.Errorf("the filter %s of %s: %w", c.name, short(p.text), err)
	}
	return nil, fmt.Errorf("the filter %s: %w", c.name, err)
}

// bound counts the work of reading the input of a filter.
func (m *machine) bound(v any, heavy int) error {
	if heavy > 0 {
		_, items := size(v, 0)
		if err := m.step((1 + items) * heavy); err != nil {
			return err
		}
	}
	return m.measure(v)
}

// byDefault returns the value, or the argument if the value is nil, false or empty. If the argument's variable is
// unknown too, the error arises where its value is needed.
func (c call) byDefault(m *machine, v any) (any, error) {
	if err := m.step(1); err != nil {
		return nil, err
	}
	allow := any(false)
	if e := c.named["allow_false"]; e != nil {
		var err error
		if allow, err = m.need(e); err != nil {
			return nil, err
		}
	}
	_, missing := v.(unknown)
	if !missing && (v != false || truthy(allow)) && v != nil && !(empty.is(v) && v != any(blank) && v != any(empty)) {
		return v, nil
	}
	if len(c.args) == 0 {
		return "", nil
	}
	return c.args[0].eval(m)
}

// markedUp returns a filter of a text that produces HTML.
func markedUp(do func(string) string) filter {
	return filter{do: func(_ *machine, v any, _ []any) (any, error) { return markup(do(textOf(v))), nil }}
}

// ofText returns a filter of one text.
func ofText(do func(string) string) filter {
	return filter{do: func(_ *machine, v any, _ []any) (any, error) { return do(textOf(v)), nil }}
}

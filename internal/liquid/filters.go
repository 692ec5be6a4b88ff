package liquid

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	standard "github.com/osteele/liquid/filters"
	"github.com/osteele/liquid/values"
)

// filter is given the value and then its arguments, none of them larger than a value may be.
type filter func(m *machine, args []any) (any, error)

// filters are all that there are: ours, and for the rest those of the library. Ours are in the place of filters that crash, are wrong
// about characters of several bytes, or make much of little.
var filters = func() map[string]filter {
	all := library{}
	standard.AddStandardFilters(all)
	delete(all, "inspect") // these two show how this is made
	delete(all, "type")
	for name, f := range map[string]filter{
		"default": byDefault, "raw": first, "escape": escaped, "escape_once": escapedOnce, "newline_to_br": lineBreaks, "strip_html": stripHTML,
		"append": appended, "prepend": prepended, "replace": replaced, "replace_first": replacedFirst, "capitalize": capitalized, "slice": slice,
		"truncate": truncated, "truncatewords": truncatedWords, "split": split, "join": join, "concat": concat, "uniq": uniq, "date": date, "round": round,
	} {
		all[name] = f
	}
	return all
}()

// safe are filters whose results are not escaped in HTML.
var safe = map[string]bool{"raw": true, "escape": true, "escape_once": true, "newline_to_br": true}

// library takes the filters of the library.
type library map[string]filter

// AddFilter is called by the library for each.
func (l library) AddFilter(name string, f any) {
	fn := reflect.ValueOf(f)
	l[name] = func(_ *machine, args []any) (any, error) { return values.Call(fn, args) }
}

// heavy are filters that compare the items of a list with one another.
var heavy = map[string]int{"sort": 16, "sort_natural": 16, "uniq": 16}

// filter is a filter as expressions call it: it demands that there are the variables, and bounds what it is given and returns.
func (m *machine) filter(name string, f filter) func(args ...any) (any, error) {
	return func(args ...any) (v any, err error) {
		defer func() {
			if p := recover(); p != nil {
				v, err = nil, unfit(name)
			}
		}()
		if name != "default" {
			if len(m.missed) > 0 {
				return nil, unknown(m.missed[0])
			}
			if args[0] == nil && m.path != "" {
				return nil, unknown(m.path)
			}
		}
		for _, arg := range args {
			if err := m.measure(arg); err != nil {
				return nil, err
			}
			if _, items := size(arg, 0); heavy[name] > 0 {
				if err := m.step(items * heavy[name]); err != nil {
					return nil, err
				}
			}
		}
		if v, err = f(m, args); err != nil {
			if !errors.Is(err, errText) && !errors.Is(err, errItems) && !errors.Is(err, errSteps) {
				err = unfit(name)
			}
			return nil, err
		}
		if f, ok := v.(float64); ok {
			v = whole(f)
		}
		return v, m.measure(v)
	}
}

// unfit is the fault of a filter that can do nothing with what it is given.
func unfit(name string) error { return fmt.Errorf("the filter %s does not fit its values", name) }

// byDefault is the value, or the argument in the place of nothing.
func byDefault(m *machine, args []any) (any, error) {
	v := args[0]
	if v != nil && v != false && !values.IsEmpty(v) {
		m.missed = m.missed[:0]
		return v, nil
	}
	if len(args) < 2 {
		return nil, errors.New("default wants a value")
	}
	if args[1] != nil { // else the last of the variables is the one that there is not
		m.missed = m.missed[:0]
	} else if n := len(m.missed); n > 0 {
		m.missed = m.missed[n-1:]
	}
	return args[1], nil
}

func first(_ *machine, args []any) (any, error) { return args[0], nil }

// texts are the arguments as texts, so many of them at least.
func texts(args []any, least int) ([]string, error) {
	if len(args) < least {
		return nil, errors.New("an argument is missing")
	}
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = written(arg)
	}
	return all, nil
}

// ofText is a filter of one text.
func ofText(do func(string) string) filter {
	return func(_ *machine, args []any) (any, error) { return do(written(args[0])), nil }
}

var (
	escaped     = ofText(escape)
	escapedOnce = ofText(func(s string) string { return escape(unescape(s)) })
	stripHTML   = ofText(withoutTags)
	capitalized = ofText(capitalize)
)

// lineBreaks makes a text HTML with its lines. Where values are escaped, so is this.
func lineBreaks(m *machine, args []any) (any, error) {
	text := written(args[0])
	if m.html {
		text = escape(text)
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return grown(text, "\n", "<br />\n", -1)
}

func appended(_ *machine, args []any) (any, error) {
	all, err := texts(args, 2)
	if err != nil {
		return nil, err
	}
	return all[0] + all[1], nil
}

func prepended(_ *machine, args []any) (any, error) {
	all, err := texts(args, 2)
	if err != nil {
		return nil, err
	}
	return all[1] + all[0], nil
}

func replaced(_ *machine, args []any) (any, error) {
	all, err := texts(append(args, ""), 3)
	if err != nil {
		return nil, err
	}
	return grown(all[0], all[1], all[2], -1)
}

func replacedFirst(_ *machine, args []any) (any, error) {
	all, err := texts(append(args, ""), 3)
	if err != nil {
		return nil, err
	}
	return grown(all[0], all[1], all[2], 1)
}

// grown replaces in a text, n times at most if that is not negative, unless that makes too much of it.
func grown(text, old, by string, n int) (any, error) {
	times := strings.Count(text, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(text)+times*(len(by)-len(old)) > maxText {
		return nil, errText
	}
	return strings.Replace(text, old, by, n), nil
}

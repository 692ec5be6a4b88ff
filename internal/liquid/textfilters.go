package liquid

import (
	"errors"
	"html"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/osteele/liquid/values"
	"github.com/osteele/tuesday"
)

func escape(s string) string   { return html.EscapeString(s) }
func unescape(s string) string { return html.UnescapeString(s) }

// withoutTags is a text without what looks like tags of HTML.
func withoutTags(s string) string {
	var all strings.Builder
	for {
		from := strings.IndexByte(s, '<')
		if from < 0 {
			break
		}
		n := strings.IndexByte(s[from:], '>')
		if n < 0 {
			break
		}
		all.WriteString(s[:from])
		s = s[from+n+1:]
	}
	all.WriteString(s)
	return all.String()
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || r == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

var errNumber = errors.New("wants a whole number")

// numberAt is an argument as a whole number; without it, another one.
func numberAt(args []any, i, otherwise int) (int, error) {
	if i >= len(args) {
		return otherwise, nil
	}
	n, err := values.Convert(args[i], reflect.TypeFor[int]())
	if err != nil {
		return 0, errNumber
	}
	return n.(int), nil
}

func textAt(args []any, i int, otherwise string) string {
	if i >= len(args) {
		return otherwise
	}
	return written(args[i])
}

// slice is a part of a text, or of a list: from a place, which counts from the end if it is negative, so many.
func slice(_ *machine, args []any) (any, error) {
	if len(args) < 2 {
		return nil, errNumber
	}
	from, err := numberAt(args, 1, 0)
	if err != nil {
		return nil, err
	}
	n, err := numberAt(args, 2, 1)
	if err != nil {
		return nil, err
	}
	cut := func(length int) (int, int) {
		if from < 0 {
			from += length
		}
		if from < 0 || from > length || n < 0 {
			return 0, 0
		}
		return from, from + min(n, length-from)
	}
	switch v := args[0].(type) {
	case []any:
		a, b := cut(len(v))
		return v[a:b:b], nil
	case []string:
		a, b := cut(len(v))
		return v[a:b:b], nil
	}
	runes := []rune(written(args[0]))
	a, b := cut(len(runes))
	return string(runes[a:b]), nil
}

// truncated is a text of so many characters at most, the ellipsis included.
func truncated(_ *machine, args []any) (any, error) {
	n, err := numberAt(args, 1, 50)
	if err != nil {
		return nil, err
	}
	ellipsis, runes := []rune(textAt(args, 2, "...")), []rune(written(args[0]))
	if len(runes) <= n {
		return string(runes), nil
	}
	return string(runes[:max(0, n-len(ellipsis))]) + string(ellipsis), nil
}

// truncatedWords is a text of so many words at most.
func truncatedWords(_ *machine, args []any) (any, error) {
	n, err := numberAt(args, 1, 15)
	if err != nil {
		return nil, err
	}
	text := written(args[0])
	words := strings.Fields(text)
	if n = max(n, 1); len(words) <= n {
		return text, nil
	}
	return strings.Join(words[:n], " ") + textAt(args, 2, "..."), nil
}

func split(_ *machine, args []any) (any, error) {
	if len(args) < 2 {
		return nil, errors.New("split wants a text")
	}
	text, by := written(args[0]), written(args[1])
	if strings.Count(text, by) > maxItems {
		return nil, errItems
	}
	var all []string
	if by == " " {
		all = strings.Fields(text)
	} else {
		all = strings.Split(text, by)
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	list := make([]any, len(all))
	for i, one := range all {
		list[i] = one
	}
	return list, nil
}

// list is a value as a list.
func list(v any) []any {
	all := itemsOf(v)
	if all.at == nil {
		if v == nil {
			return nil
		}
		return []any{v}
	}
	items := make([]any, all.n) // it was measured
	for i := range items {
		items[i] = all.at(i)
	}
	return items
}

func join(_ *machine, args []any) (any, error) {
	items, by := list(args[0]), textAt(args, 1, " ")
	total := 0
	all := make([]string, 0, len(items))
	for _, one := range items {
		if one == nil {
			continue
		}
		text := written(one)
		if total += len(text) + len(by); total > maxText+len(by) {
			return nil, errText
		}
		all = append(all, text)
	}
	return strings.Join(all, by), nil
}

func concat(_ *machine, args []any) (any, error) {
	if len(args) < 2 {
		return nil, errors.New("concat wants a list")
	}
	a, b := list(args[0]), list(args[1])
	return append(a[:len(a):len(a)], b...), nil
}

// uniq is a list without what equals an item before it.
func uniq(m *machine, args []any) (any, error) {
	var (
		all  []any
		seen = map[any]bool{}
	)
	for _, one := range list(args[0]) {
		if one == nil || reflect.TypeOf(one).Comparable() {
			if !seen[one] {
				seen[one], all = true, append(all, one)
			}
			continue
		}
		known := false
		for _, other := range all {
			if err := m.step(1); err != nil {
				return nil, errItems
			}
			if known = reflect.DeepEqual(one, other); known {
				break
			}
		}
		if !known {
			all = append(all, one)
		}
	}
	return all, nil
}

// wide is a conversion of a date to a width that no date has.
var wide = regexp.MustCompile(`%[-_^#0:]*\d{3}`)

// dateSteps is what a conversion of a date costs: most of it goes into the blanks of a wide one.
const dateSteps = 10

func date(m *machine, args []any) (any, error) {
	format := textAt(args, 1, "%a, %b %d, %y")
	if wide.MatchString(format) || len(format) > 1000 {
		return nil, errors.New("the format is too wide")
	}
	if err := m.step(dateSteps * strings.Count(format, "%")); err != nil {
		return nil, err
	}
	v, err := values.Convert(args[0], reflect.TypeFor[time.Time]())
	if err != nil {
		return nil, err
	}
	return tuesday.Strftime(format, v.(time.Time))
}

func round(_ *machine, args []any) (any, error) {
	v, err := values.Convert(args[0], reflect.TypeFor[float64]())
	if err != nil {
		return nil, err
	}
	places, err := numberAt(args, 1, 0)
	if err != nil {
		return nil, err
	}
	exp := math.Pow10(min(max(places, -15), 15))
	n := math.Floor(v.(float64)*exp+0.5) / exp
	return n, nil
}

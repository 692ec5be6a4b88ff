package httpapi

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
)

// value is how the value of a field is read into a T, and how it is described. A scalar has parse; an object or an
// array has its own reader.
type value[T any] struct {
	describe func(*spec) *huma.Schema

	parse  func(to *T, text string) (wrong string)
	quoted bool                     // in JSON the scalar is a string
	preset string                   // what is parsed where the field is absent; "": nothing
	filter bool                     // in a query, the empty scalar counts as absent
	mend   func(text string) string // what was meant by a text in a query; nil: the text

	json  func(to *T, raw []byte, name string, errs *fieldErrors) (wrong string)
	array func(r *reader, to *T, name string, errs *fieldErrors)
}

// or is the value with a default, as a text.
func (v value[T]) or(preset string) value[T] {
	describe := v.describe
	v.preset = preset
	v.describe = func(s *spec) *huma.Schema {
		schema := describe(s)
		schema.Default = rawJSON(preset)
		if v.quoted {
			schema.Default = preset
		}
		return schema
	}
	return v
}

// readJSON reads a value of JSON, or says what is wrong with it.
func (v *value[T]) readJSON(raw []byte, to *T, name string, errs *fieldErrors) (wrong string) {
	switch {
	case v.json != nil:
		return v.json(to, raw, name, errs)
	case v.array != nil:
		return "must be an array"
	case !v.quoted:
		return v.parse(to, string(raw))
	case raw[0] != '"':
		return "must be a string"
	}
	text, ok := unquote(raw)
	if !ok {
		return "must be valid Unicode: it has half of a surrogate pair"
	}
	return v.parse(to, text)
}

// described makes the description of a scalar.
func described(schema huma.Schema) func(*spec) *huma.Schema {
	return func(*spec) *huma.Schema { one := schema; return &one }
}

// text reads least to most printable bytes.
func text[T any](set func(*T, string), least, most int) value[T] {
	return value[T]{
		quoted: true, filter: true,
		parse: func(to *T, text string) string {
			wrong := unfit(text, least, most)
			if wrong == "" {
				set(to, text)
			}
			return wrong
		},
		describe: func(*spec) *huma.Schema {
			schema := &huma.Schema{Type: huma.TypeString, MaxLength: &most}
			if least > 0 {
				schema.MinLength = &least
			}
			return schema
		},
	}
}

// unfit says why s does not consist of least to most printable bytes, or nothing.
func unfit(s string, least, most int) string {
	switch {
	case len(s) < least:
		return "must not be empty"
	case len(s) > most:
		return fmt.Sprintf("must have at most %d bytes, has %d", most, len(s))
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	}
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return fmt.Sprintf("must be printable, but has the character %U", c)
		}
	}
	return ""
}

// oneOf reads one of a few words.
func oneOf[T any, W ~string](set func(*T, W), words ...W) value[T] {
	schema := huma.Schema{Type: huma.TypeString}
	for _, w := range words {
		schema.Enum = append(schema.Enum, string(w))
	}
	return value[T]{quoted: true, filter: true, describe: described(schema), parse: func(to *T, text string) string {
		i := slices.Index(words, W(text))
		if i < 0 {
			return "must be one of: " + join(words)
		}
		set(to, words[i])
		return ""
	}}
}

func join[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// boolean reads true or false. In a query it must not be empty: what does not clearly say whether it is a rehearsal
// must not be carried out.
func boolean[T any](set func(*T, bool)) value[T] {
	return value[T]{describe: described(huma.Schema{Type: huma.TypeBoolean}), parse: func(to *T, text string) string {
		if text != "true" && text != "false" {
			return "must be true or false"
		}
		set(to, text == "true")
		return ""
	}}
}

// integer reads a whole number from least to most.
func integer[T any](set func(*T, int), least, most int) value[T] {
	low, high := float64(least), float64(most)
	schema := huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
	return value[T]{filter: true, describe: described(schema), parse: func(to *T, text string) string {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Sprintf("must be a whole number from %d to %d", least, most)
		}
		set(to, n)
		return ""
	}}
}

// spanShape is that of the time spans that the document describes.
const spanShape = `^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`

// span reads a time span from least to most.
func span[T any](set func(*T, time.Duration), least, most time.Duration) value[T] {
	shape := regexp.MustCompile(spanShape)
	return value[T]{quoted: true, filter: true, describe: described(huma.Schema{Type: huma.TypeString, Pattern: spanShape}), parse: func(to *T, text string) string {
		d, err := time.ParseDuration(text)
		if err != nil || !shape.MatchString(text) || d < least || d > most {
			return fmt.Sprintf("must be a time span from %s to %gh, written like 500ms, 90s or 24h", least, most.Hours())
		}
		set(to, d)
		return ""
	}}
}

// identifier reads a UUID.
func identifier[T any](set func(*T, uuid.UUID)) value[T] {
	return value[T]{quoted: true, filter: true, describe: described(huma.Schema{Type: huma.TypeString, Format: "uuid"}), parse: func(to *T, text string) string {
		id, wrong := parseID(text)
		set(to, id)
		return wrong
	}}
}

func parseID(text string) (id uuid.UUID, wrong string) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, "must be a UUID"
	}
	return id, ""
}

// anyObject reads any JSON object as it is.
func anyObject[T any](set func(*T, []byte)) value[T] {
	return value[T]{
		describe: described(huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{}}),
		json: func(to *T, raw []byte, _ string, _ *fieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			set(to, raw)
			return ""
		},
	}
}

// shaped is an object whose members have a table of their own. They are looked at, but not read.
func (v value[T]) shaped(members *table[struct{}]) value[T] {
	accept := v.json
	v.describe = members.schema
	v.json = func(to *T, raw []byte, name string, errs *fieldErrors) string {
		wrong := accept(to, raw, name, errs)
		if wrong == "" {
			var found fieldErrors
			members.read(newReader(raw), &struct{}{}, &found)
			errs.addAll(name, found)
		}
		return wrong
	}
	return v
}

// token is a text that is not looked at here.
func token[T any](set func(*T, string)) value[T] {
	return value[T]{filter: true, describe: described(huma.Schema{Type: huma.TypeString}), parse: func(to *T, text string) string {
		set(to, text)
		return ""
	}}
}

// anyText is a string that is not looked at, and anything is any value at all.
func anyText() value[struct{}] {
	return value[struct{}]{describe: described(huma.Schema{Type: huma.TypeString}), json: func(_ *struct{}, raw []byte, _ string, _ *fieldErrors) string {
		if raw[0] != '"' {
			return "must be a string"
		}
		return ""
	}}
}

func anything() value[struct{}] {
	return value[struct{}]{describe: described(huma.Schema{}), json: func(*struct{}, []byte, string, *fieldErrors) string { return "" }}
}

// array reads least to most elements, each by element. If most is 0, there may be any number.
func array[T any](least, most int, items func(*spec) *huma.Schema, element func(to *T, r *reader, i int, name string, errs *fieldErrors)) value[T] {
	return value[T]{
		describe: func(s *spec) *huma.Schema {
			schema := &huma.Schema{Type: huma.TypeArray, Items: items(s), MinItems: &least}
			if most > 0 {
				schema.MaxItems = &most
			}
			return schema
		},
		array: func(r *reader, to *T, name string, errs *fieldErrors) {
			n := 0
			for i := range r.elements {
				if n++; most == 0 || n <= most {
					element(to, r, i, name, errs)
				} else {
					r.value()
				}
			}
			switch {
			case r.err != nil:
			case most == 0 && n < least:
				errs.add(name, "must not be empty; leave it out for the default", nil)
			case most > 0 && (n < least || n > most):
				errs.add(name, fmt.Sprintf("must have %d to %d %s, has %d", least, most, name, n), nil)
			}
		},
	}
}

// unique is an array without equal elements; its reader sees to that.
func (v value[T]) unique() value[T] {
	describe := v.describe
	v.describe = func(s *spec) *huma.Schema {
		schema := describe(s)
		schema.UniqueItems = true
		return schema
	}
	return v
}

// item is the location of an element of an array.
func item(array string, i int) string { return array + "[" + strconv.Itoa(i) + "]" }

const timeExample = "2026-12-01T09:00:00Z"

// moment reads a time with a zone.
func moment[T any](set func(*T, time.Time)) value[T] {
	return value[T]{
		quoted: true, filter: true, mend: restorePlus, describe: described(huma.Schema{Type: huma.TypeString, Format: "date-time"}),
		parse: func(to *T, text string) string {
			t, wrong := parseTime(text)
			if wrong == "" {
				set(to, t)
			}
			return wrong
		},
	}
}

// restorePlus restores the plus sign of a zone, which a query without escapes turns into a blank.
func restorePlus(text string) string {
	if n := len(text) - len("+00:00"); n > 0 && text[n] == ' ' {
		return text[:n] + "+" + text[n+1:]
	}
	return text
}

// parseTime reads a time of RFC 3339 to the letter, in the years 1 to 9999 of UTC, or says what is wrong with it. It
// never returns the zero time, which stands for an absent one.
func parseTime(s string) (time.Time, string) {
	t, err := parseRFC3339(s)
	if err != nil {
		if _, err := parseRFC3339(s + "Z"); err == nil {
			return time.Time{}, "needs a time zone, like " + timeExample
		}
		return time.Time{}, "must be a time like " + timeExample
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, "must lie in the years 1 to 9999"
	}
	if t.IsZero() {
		t = t.Add(time.Nanosecond)
	}
	return t, ""
}

// parseRFC3339 allows a lower-case t and z, as the RFC does, but not what time.Parse lets pass: 9:00 for 09:00, a comma
// for a point, a zone of +25:00.
func parseRFC3339(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, err
	}
	if s[13] != ':' || strings.Contains(s, ",") {
		return t, errSloppy
	}
	if zone := s[len(s)-len("00:00"):]; s[len(s)-1] != 'Z' && (zone[:2] > "23" || zone[3:] > "59") {
		return t, errSloppy
	}
	return t, nil
}

var errSloppy = errors.New("not quite RFC 3339")

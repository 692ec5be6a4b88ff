package httpapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// value is how the value of a field is read into a T, and how it is described. A scalar has parse; an object or an
// array has its own reader. See scalars.go, times.go and containers.go.
type value[T any] struct {
	describe func(*spec) *huma.Schema

	parse  func(to *T, text string) (wrong string)
	quoted bool                     // in JSON the scalar is a string
	preset string                   // what is parsed where the field is absent; "": nothing
	strict bool                     // in a query, the empty scalar is an error; otherwise it counts as absent
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

// orNull is the value, or null, of which absent is told.
func (v value[T]) orNull(absent func(to *T)) value[T] {
	describe, plain := v.describe, v
	v.describe = func(s *spec) *huma.Schema {
		schema := describe(s)
		if ref := schema.Ref; ref != "" { // a name for it would say that it has a type
			schema = new(*s.schemas.SchemaFromRef(ref))
			delete(s.schemas.Map(), strings.TrimPrefix(ref, schemaPrefix))
		}
		schema.Type, schema.Enum = "", nil // its format is that of a string
		return schema
	}
	v.json = func(to *T, raw []byte, name string, errs *fieldErrors) string {
		if string(raw) == "null" {
			absent(to)
			return ""
		}
		return plain.readJSON(raw, to, name, errs)
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
		return v.parse(to, wholeNumber(raw))
	case raw[0] != '"':
		return "must be a string"
	}
	text, ok := unquote(raw)
	if !ok {
		return halfPair
	}
	return v.parse(to, text)
}

// described makes the description of a value.
func described(schema huma.Schema) func(*spec) *huma.Schema {
	return func(*spec) *huma.Schema { one := schema; return &one }
}

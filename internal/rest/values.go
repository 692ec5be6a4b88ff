package rest

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Value is how the value of a field is read into a T, and how it is described. A scalar has parse; an object or an
// array has its own reader. See scalars.go, times.go and containers.go.
type Value[T any] struct {
	Describe func(*Spec) *huma.Schema

	parse  func(to *T, text string) (wrong string)
	quoted bool                     // in JSON the scalar is a string
	preset string                   // what is parsed where the field is absent; "": nothing
	strict bool                     // in a query, the empty scalar is an error; otherwise it counts as absent
	mend   func(text string) string // what was meant by a text in a query; nil: the text

	JSON  func(to *T, raw []byte, name string, errs *FieldErrors) (wrong string)
	array func(r *Reader, to *T, name string, errs *FieldErrors)
}

// Or is the value with a default, as a text.
func (v Value[T]) Or(preset string) Value[T] {
	describe := v.Describe
	v.preset = preset
	v.Describe = func(s *Spec) *huma.Schema {
		schema := describe(s)
		schema.Default = rawJSON(preset)
		if v.quoted {
			schema.Default = preset
		}
		return schema
	}
	return v
}

// OrNull is the value, or null, of which absent is told.
func (v Value[T]) OrNull(absent func(to *T)) Value[T] {
	describe, plain := v.Describe, v
	v.Describe = func(s *Spec) *huma.Schema {
		schema := describe(s)
		if ref := schema.Ref; ref != "" { // a name for it would say that it has a type
			schema = new(*s.schemas.SchemaFromRef(ref))
			delete(s.schemas.Map(), strings.TrimPrefix(ref, schemaPrefix))
		}
		schema.Type, schema.Enum = "", nil // its format is that of a string
		return schema
	}
	v.JSON = func(to *T, raw []byte, name string, errs *FieldErrors) string {
		if string(raw) == "null" {
			absent(to)
			return ""
		}
		return plain.ReadJSON(raw, to, name, errs)
	}
	return v
}

// ReadJSON reads a value of JSON, or says what is wrong with it.
func (v *Value[T]) ReadJSON(raw []byte, to *T, name string, errs *FieldErrors) (wrong string) {
	switch {
	case v.JSON != nil:
		return v.JSON(to, raw, name, errs)
	case v.array != nil:
		return "must be an array"
	case !v.quoted:
		return v.parse(to, wholeNumber(raw))
	case raw[0] != '"':
		return "must be a string"
	}
	text, ok := Unquote(raw)
	if !ok {
		return HalfPair
	}
	return v.parse(to, text)
}

// Described makes the description of a value.
func Described(schema huma.Schema) func(*Spec) *huma.Schema {
	return func(*Spec) *huma.Schema { one := schema; return &one }
}

package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Value reads and describes the value of a field of a T. A scalar has parse; an object or an
// array has a reader of its own. The scalars are in scalars.go.
type Value[T any] struct {
	Describe func(*Spec) *huma.Schema

	parse  func(to *T, text string) (wrong string)
	quoted bool                     // in JSON, the scalar is a string
	preset string                   // the text of an absent field; "": none
	strict bool                     // in a query, the empty scalar is an error; otherwise it counts as absent
	mend   func(text string) string // repairs a text in a query; nil: the text stays

	JSON  func(to *T, raw []byte, name string, errs *FieldErrors) (wrong string)
	array func(r *Reader, to *T, name string, errs *FieldErrors)
}

// Or returns the value with a default, given as a text.
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

// OrNull returns a value that may be null. For null, it calls absent.
func (v Value[T]) OrNull(absent func(to *T)) Value[T] {
	describe, plain := v.Describe, v
	v.Describe = func(s *Spec) *huma.Schema {
		schema := describe(s)
		if ref := schema.Ref; ref != "" { // a named schema would have a type
			schema = new(*s.schemas.SchemaFromRef(ref))
			delete(s.schemas.Map(), strings.TrimPrefix(ref, schemaPrefix))
		}
		schema.Type, schema.Enum = "", nil // the format still applies to strings
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

// ReadJSON reads a value of JSON. It returns the error as a text, or "".
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

// Described returns a function that describes a value by a schema.
func Described(schema huma.Schema) func(*Spec) *huma.Schema {
	return func(*Spec) *huma.Schema { one := schema; return &one }
}

// wholeNumber removes a zero fraction from a number of JSON: 5.0 and 5e0 become 5. Everything else stays unchanged.
func wholeNumber(raw []byte) string {
	text := string(raw)
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[at+1:]); err != nil {
			return text
		}
		mantissa = text[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) + exponent - len(digits) // behind the digits
	switch {
	case mantissa == text && fraction == "":
		return text
	case digits == "" || digits == "-":
		return "0"
	case zeros < 0 || zeros > maxDigits:
		return text
	}
	return digits + strings.Repeat("0", zeros)
}

// maxDigits is more than the digits of any integer.
const maxDigits = 20

// RawObject is a stored JSON object with any members; nil: null.
type RawObject json.RawMessage

func (o RawObject) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema describes it.
func (RawObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// RawObjects is an array of such objects.
type RawObjects json.RawMessage

func (o RawObjects) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema describes it.
func (RawObjects) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: RawObject{}.Schema(r)}
}

// AnyObject reads any JSON object unchanged.
func AnyObject[T any](set func(*T, []byte)) Value[T] {
	return Value[T]{
		Describe: Described(huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{}}),
		JSON: func(to *T, raw []byte, _ string, _ *FieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			set(to, raw)
			return ""
		},
	}
}

// Shaped returns an object with members that are checked by a table, but not read.
func (v Value[T]) Shaped(members *Table[struct{}]) Value[T] {
	accept := v.JSON
	v.Describe = members.Schema
	v.JSON = func(to *T, raw []byte, name string, errs *FieldErrors) string {
		wrong := accept(to, raw, name, errs)
		if wrong == "" {
			var found FieldErrors
			ReadAgain(raw, func(r *Reader) { members.Read(r, &struct{}{}, &found) })
			errs.AddAll(name, found)
		}
		return wrong
	}
	return v
}

// Object reads an object by a table.
func Object[T, P any](of *Table[P], at func(*T) *P) Value[T] {
	return Value[T]{
		Describe: of.Schema,
		JSON: func(to *T, raw []byte, name string, errs *FieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			var (
				part  P
				found FieldErrors
			)
			ReadAgain(raw, func(r *Reader) { of.Read(r, &part, &found) })
			*at(to) = part
			errs.AddAll(name, found)
			return ""
		},
	}
}

// Ignored reads any value and drops it.
func Ignored[T any]() Value[T] {
	return Value[T]{Describe: Described(huma.Schema{}), JSON: func(*T, []byte, string, *FieldErrors) string { return "" }}
}

// AnyText reads any string, and Anything any value. Both are only checked.
func AnyText() Value[struct{}] {
	return Value[struct{}]{Describe: Described(huma.Schema{Type: huma.TypeString}), JSON: func(_ *struct{}, raw []byte, _ string, _ *FieldErrors) string {
		if raw[0] != '"' {
			return "must be a string"
		}
		return ""
	}}
}

// Anything reads any value of JSON, and only checks it.
func Anything() Value[struct{}] {
	return Value[struct{}]{Describe: Described(huma.Schema{}), JSON: func(*struct{}, []byte, string, *FieldErrors) string { return "" }}
}

// Array reads least to most elements, each with element. If most is 0, the number is not limited.
func Array[T any](least, most int, items func(*Spec) *huma.Schema, element func(to *T, r *Reader, i int, name string, errs *FieldErrors)) Value[T] {
	return Value[T]{
		Describe: func(s *Spec) *huma.Schema {
			schema := &huma.Schema{Type: huma.TypeArray, Items: items(s), MinItems: &least}
			if most > 0 {
				schema.MaxItems = &most
			}
			return schema
		},
		array: func(r *Reader, to *T, name string, errs *FieldErrors) {
			n := 0
			for i := range r.elements {
				if n++; most == 0 || n <= most {
					element(to, r, i, name, errs)
				} else {
					r.Value()
				}
			}
			switch {
			case r.Err != nil:
			case most == 0 && n < least:
				errs.Add(name, "must not be empty; leave it out for the default", nil)
			case most > 0 && (n < least || n > most):
				errs.Add(name, fmt.Sprintf("must have %d to %d %s, has %d", least, most, name, n), nil)
			}
		},
	}
}

// Unique documents that an array has no equal elements. Its reader checks that.
func (v Value[T]) Unique() Value[T] {
	describe := v.Describe
	v.Describe = func(s *Spec) *huma.Schema {
		schema := describe(s)
		schema.UniqueItems = true
		return schema
	}
	return v
}

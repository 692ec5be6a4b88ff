package rest

import (
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Value reads and describes the value of a field of a T. A scalar has parse; an object or an
// array has a reader of its own. See scalars.go, times.go and containers.go.
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

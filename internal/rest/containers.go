package rest

import (
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

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

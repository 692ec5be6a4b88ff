package httpapi

import (
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

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
			readAgain(raw, func(r *reader) { members.read(r, &struct{}{}, &found) })
			errs.addAll(name, found)
		}
		return wrong
	}
	return v
}

// object reads an object that has a table of its own.
func object[T, P any](of *table[P], at func(*T) *P) value[T] {
	return value[T]{
		describe: of.schema,
		json: func(to *T, raw []byte, name string, errs *fieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			var (
				part  P
				found fieldErrors
			)
			readAgain(raw, func(r *reader) { of.read(r, &part, &found) })
			*at(to) = part
			errs.addAll(name, found)
			return ""
		},
	}
}

// ignored is any value. It is not looked at.
func ignored[T any]() value[T] {
	return value[T]{describe: described(huma.Schema{}), json: func(*T, []byte, string, *fieldErrors) string { return "" }}
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

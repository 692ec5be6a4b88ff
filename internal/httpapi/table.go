package httpapi

import (
	"bytes"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// table describes an object that callers send: the members of a JSON object, or the parameters of a query.
// Requests are read by it into a T, and the OpenAPI document is written from it: a member is one row.
type table[T any] struct {
	schemaName string
	fields     []field[T]
	open       bool // there may be other members, which are passed on unread

	// refuse says what is wrong with a member that is not in the table, if there is more to say than that.
	refuse func(name string, raw []byte, errs *fieldErrors) bool
	// check tests what one member alone cannot tell.
	check func(to *T, text []byte, errs *fieldErrors)
}

// field is a row of a table.
type field[T any] struct {
	name        string
	required    bool
	value       value[T]
	description string
	example     any // nil: none
}

// For readable rows.
const (
	required = true
	optional = false
)

// find returns the index of a field, or -1.
func (o *table[T]) find(name string) int {
	for i := range o.fields {
		if o.fields[i].name == name {
			return i
		}
	}
	return -1
}

// described is the row of a field with another description.
func (o *table[T]) described(name, description string) field[T] {
	f := o.fields[o.find(name)]
	f.description = description
	return f
}

// read reads the object that comes next and returns its text, or nil if something else comes. After a syntax error, r
// has it.
func (o *table[T]) read(r *reader, to *T, errs *fieldErrors) (text []byte) {
	if r.peek() != '{' {
		if raw := r.value(); r.err == nil {
			errs.addJSON("", "must be an object", raw)
		}
		return nil
	}
	from, given := r.offset(), uint64(0)
	for name := range r.members {
		if i := o.find(string(name)); i >= 0 {
			given |= 1 << i
			o.fields[i].read(r, to, errs)
			continue
		}
		known := short(name)
		if raw := r.value(); r.err == nil && !o.open {
			o.unknown(known, raw, r.deep, errs)
		}
	}
	if r.err != nil {
		return nil
	}
	for i := range o.fields {
		if given&(1<<i) == 0 {
			o.fields[i].absent(to, errs)
		}
	}
	text = bytes.TrimLeft(r.data[from:r.offset()], ",: \t\r\n")
	if o.check != nil {
		o.check(to, text, errs)
	}
	return text
}

func (o *table[T]) unknown(name string, raw []byte, deep bool, errs *fieldErrors) {
	switch {
	case deep:
		errs.add(name, tooDeep, nil)
	case o.refuse != nil && o.refuse(name, raw, errs):
	default:
		errs.addJSON(name, "unexpected property", raw)
	}
}

const tooDeep = "must not be nested deeper than 100 levels"

// short cuts a name that is used in a location.
func short(name []byte) string {
	if len(name) <= 64 {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:64]), "") + "…"
}

// read reads the value of the field, which comes next.
func (f *field[T]) read(r *reader, to *T, errs *fieldErrors) {
	if f.value.array != nil && r.peek() == '[' {
		f.value.array(r, to, f.name, errs)
		return
	}
	raw := r.value()
	switch {
	case r.err != nil:
	case r.deep:
		errs.add(f.name, tooDeep, nil)
	default:
		since := len(errs.list)
		if wrong := f.value.readJSON(raw, to, f.name, errs); wrong != "" {
			errs.addJSON(f.name, wrong, raw)
		}
		errs.addHalves(f.name, raw, since)
	}
}

// absent is for a field that was not sent.
func (f *field[T]) absent(to *T, errs *fieldErrors) {
	if f.required {
		errs.add(f.name, "is required", nil)
	}
	if f.value.preset != "" {
		f.value.parse(to, f.value.preset)
	}
}

// readBody reads a body by the table. It returns all that is wrong with the request.
func (o *table[T]) readBody(c *call, to *T, bad *fieldErrors) error {
	var found fieldErrors
	if _, err := c.object(maxBody, bad, func(r *reader) { o.read(r, to, &found) }); err != nil {
		return err
	}
	bad.addAll("body", found)
	return bad.err()
}

// schema describes the object under its name, to which it returns a reference.
func (o *table[T]) schema(s *spec) *huma.Schema {
	all := s.schemas.Map()
	if all[o.schemaName] == nil {
		schema := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: o.open}
		all[o.schemaName] = schema
		for _, f := range o.fields {
			schema.Properties[f.name] = f.schema(s)
			if f.required {
				schema.Required = append(schema.Required, f.name)
			}
		}
		schema.PrecomputeMessages()
	}
	return &huma.Schema{Ref: schemaPrefix + o.schemaName}
}

func (f *field[T]) schema(s *spec) *huma.Schema {
	schema := f.value.describe(s)
	schema.Description = f.description
	if f.example != nil {
		schema.Examples = []any{f.example}
	}
	return schema
}

// body documents the object as the body of a request.
func (o *table[T]) body(s *spec, example any) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: o.schema(s), Example: plainJSON(example)},
	}}
}

// unchosen refuses the member secret, which callers cannot set.
func unchosen(name string, _ []byte, errs *fieldErrors) bool {
	if name != "secret" {
		return false
	}
	errs.add(name, "cannot be chosen: it is generated, and shown in the answer", nil)
	return true
}

// row returns a row of a table. A nil example means none.
func row[T any](name string, required bool, value value[T], description string, example any) field[T] {
	return row(name, required, value, description, example)
}

package rest

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/invalid"
)

// Table describes an object that callers send: the members of a JSON object, or the parameters of a query.
// Requests are read by it into a T, and the OpenAPI document is generated from it. Each member is a row.
type Table[T any] struct {
	SchemaName string
	Fields     []Field[T]
	Open       bool // other members are allowed and ignored

	// Refuse adds an error for a member that is not in the table, and reports whether it did; nil: the usual error is added.
	Refuse func(name string, raw []byte, errs *FieldErrors) bool
	// Check adds errors that concern several members.
	Check func(to *T, errs *FieldErrors)
}

// Field is a row of a table.
type Field[T any] struct {
	Name        string
	required    bool
	value       Value[T]
	Description string
	Example     any // nil: none
}

// Names for the parameter of [Row].
const (
	Required = true
	Optional = false
)

// Find returns the index of a field, or -1.
func (o *Table[T]) Find(name string) int {
	for i := range o.Fields {
		if o.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// names lists the names of the fields.
func (o *Table[T]) names() []string {
	names := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		names[i] = f.Name
	}
	return names
}

// Described returns the row of a field with another description.
func (o *Table[T]) Described(name, description string) Field[T] {
	f := o.Fields[o.Find(name)]
	f.Description = description
	return f
}

// Read reads the next object, and keeps its text in errs unless the next value is no object. After a syntax error, r has
// the error.
func (o *Table[T]) Read(r *Reader, to *T, errs *FieldErrors) {
	if r.Peek() != '{' {
		if raw := r.Value(); r.Err == nil {
			errs.AddJSON("", "must be an object", raw)
		}
		return
	}
	from, given := r.Offset(), uint64(0)
	for name := range r.Members {
		if i := o.Find(string(name)); i >= 0 {
			given |= 1 << i
			o.Fields[i].read(r, to, errs)
			continue
		}
		known := Short(name)
		if raw := r.Value(); r.Err == nil && !o.Open {
			o.unknown(known, raw, r.deep, errs)
		}
	}
	if r.Err != nil {
		return
	}
	for i := range o.Fields {
		if given&(1<<i) == 0 {
			o.Fields[i].absent(to, errs)
		}
	}
	errs.Object = bytes.TrimLeft(r.data[from:r.Offset()], ",: \t\r\n")
	if o.Check != nil {
		o.Check(to, errs)
	}
}

func (o *Table[T]) unknown(name string, raw []byte, deep bool, errs *FieldErrors) {
	switch {
	case deep:
		errs.Add(name, tooDeep, nil)
	case o.Refuse != nil && o.Refuse(name, raw, errs):
	default:
		errs.AddJSON(name, invalid.Suggested("unexpected property", name, o.names()), raw)
	}
}

const tooDeep = "must not be nested deeper than 100 levels"

// read reads the next value as the value of the field.
func (f *Field[T]) read(r *Reader, to *T, errs *FieldErrors) {
	if f.value.array != nil && r.Peek() == '[' {
		f.value.array(r, to, f.Name, errs)
		return
	}
	raw := r.Value()
	switch {
	case r.Err != nil:
	case r.deep:
		errs.Add(f.Name, tooDeep, nil)
	default:
		since := len(errs.List)
		if wrong := f.value.ReadJSON(raw, to, f.Name, errs); wrong != "" {
			errs.AddJSON(f.Name, wrong, raw)
		}
		errs.addHalves(f.Name, raw, since)
	}
}

// absent handles a member that was not sent.
func (f *Field[T]) absent(to *T, errs *FieldErrors) { f.missing(f.Name, to, errs) }

// missing handles a field that was not sent at a place.
func (f *Field[T]) missing(place string, to *T, errs *FieldErrors) {
	if f.required {
		errs.Add(place, "is required", nil)
	}
	if f.value.preset != "" {
		f.value.parse(to, f.value.preset)
	}
}

// Schema describes the object as a component, and returns a reference to it.
func (o *Table[T]) Schema(s *Spec) *huma.Schema {
	all := s.schemas.Map()
	if all[o.SchemaName] == nil {
		schema := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: o.Open}
		all[o.SchemaName] = schema
		for _, f := range o.Fields {
			schema.Properties[f.Name] = f.schema(s)
			if f.required {
				schema.Required = append(schema.Required, f.Name)
			}
		}
		schema.PrecomputeMessages()
	}
	return &huma.Schema{Ref: schemaPrefix + o.SchemaName}
}

func (f *Field[T]) schema(s *Spec) *huma.Schema {
	schema := f.value.Describe(s)
	schema.Description = f.Description
	if f.Example != nil {
		schema.Examples = []any{f.Example}
	}
	return schema
}

// Body documents the object as the body of a request.
func (o *Table[T]) Body(s *Spec, example any) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: o.Schema(s), Example: PlainJSON(example)},
	}}
}

// Unchosen rejects the member secret, which callers cannot set.
func Unchosen(name string, _ []byte, errs *FieldErrors) bool {
	if name != "secret" {
		return false
	}
	errs.Add(name, "cannot be chosen: it is generated, and shown in the answer", nil)
	return true
}

// Row returns a row of a table. A nil example means none.
func Row[T any](name string, required bool, value Value[T], description string, example any) Field[T] {
	return Field[T]{Name: name, required: required, value: value, Description: description, Example: example}
}

// ReadQuery reads the parameters of a query. It rejects unknown parameters and repeated
// ones.
func (o *Table[T]) ReadQuery(r *http.Request, to *T, bad *FieldErrors) {
	var values url.Values
	if r.URL.RawQuery != "" {
		var err error
		if values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			bad.Add("query", "is malformed: parameters are separated by & and escaped with %", nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		switch {
		case o.Find(name) < 0:
			name = Short([]byte(ValidUTF8(name)))
			BadParameter(bad, name, invalid.Suggested("unexpected parameter", name, o.names()), given[0])
		case len(given) > 1:
			BadParameter(bad, name, "is given more than once", given[1])
		}
	}
	for i := range o.Fields {
		o.Fields[i].readParameter(values, to, bad)
	}
}

func (f *Field[T]) readParameter(values url.Values, to *T, bad *FieldErrors) {
	text := values.Get(f.Name)
	if text == "" && (!f.value.strict || !values.Has(f.Name)) {
		f.missing("query."+f.Name, to, bad)
		return
	}
	given := text
	if f.value.mend != nil {
		text = f.value.mend(text)
	}
	if wrong := f.value.parse(to, text); wrong != "" {
		BadParameter(bad, f.Name, wrong, given)
	}
}

// BadParameter adds an error of a parameter of the query.
func BadParameter(bad *FieldErrors, name, message, value string) {
	bad.Add("query."+name, message, Shown(ValidUTF8(value)))
}

// ValidUTF8 replaces invalid UTF-8 by the replacement character.
func ValidUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// parameters documents the table as the parameters of a query.
func (o *Table[T]) parameters(s *Spec) []*huma.Param {
	all := make([]*huma.Param, len(o.Fields))
	for i, f := range o.Fields {
		all[i] = &huma.Param{In: "query", Name: f.Name, Required: f.required, Description: f.Description, Schema: f.value.Describe(s), Example: f.Example}
	}
	return all
}

// nothing is the table of a query without parameters, or of a body without members.
var nothing = Table[struct{}]{}

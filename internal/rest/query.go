package rest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

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
			BadParameter(bad, Short([]byte(ValidUTF8(name))), "unexpected parameter", given[0])
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
		f.absent(to, bad)
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
		all[i] = &huma.Param{In: "query", Name: f.Name, Description: f.Description, Schema: f.value.Describe(s), Example: f.Example}
	}
	return all
}

// nothing is the table of a query without parameters, or of a body without members.
var nothing = Table[struct{}]{}

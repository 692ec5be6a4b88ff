package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// readQuery reads the parameters behind the question mark. It refuses those that are not in the table, and those given
// twice.
func (o *table[T]) readQuery(r *http.Request, to *T, bad *fieldErrors) {
	var values url.Values
	if r.URL.RawQuery != "" {
		var err error
		if values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			bad.add("query", "is malformed: parameters are separated by & and escaped with %", nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		switch {
		case o.find(name) < 0:
			badParameter(bad, short([]byte(validUTF8(name))), "unexpected parameter", given[0])
		case len(given) > 1:
			badParameter(bad, name, "is given more than once", given[1])
		}
	}
	for i := range o.fields {
		o.fields[i].readParameter(values, to, bad)
	}
}

func (f *field[T]) readParameter(values url.Values, to *T, bad *fieldErrors) {
	text := values.Get(f.name)
	if text == "" && (!f.value.strict || !values.Has(f.name)) {
		f.absent(to, bad)
		return
	}
	given := text
	if f.value.mend != nil {
		text = f.value.mend(text)
	}
	if wrong := f.value.parse(to, text); wrong != "" {
		badParameter(bad, f.name, wrong, given)
	}
}

func badParameter(bad *fieldErrors, name, message, value string) {
	bad.add("query."+name, message, shown(validUTF8(value)))
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// parameters documents the object as the parameters of a query.
func (o *table[T]) parameters(s *spec) []*huma.Param {
	all := make([]*huma.Param, len(o.fields))
	for i, f := range o.fields {
		all[i] = &huma.Param{In: "query", Name: f.name, Description: f.description, Schema: f.value.describe(s), Example: f.example}
	}
	return all
}

// nothing is the table of a query without parameters, or of a body without members.
var nothing = table[struct{}]{}

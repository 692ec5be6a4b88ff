package rest

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// PathParam is a parameter of paths.
type PathParam struct {
	Name, Component, Description string
	Example                      string
	MaxText                      int  // the longest text, in bytes; 0: the parameter is a UUID
	Logged                       bool // the log names the id
}

// pathParams returns the parameters of a path, in their order. known has them by the path that ends with each.
func pathParams(path string, known map[string]PathParam) (all []PathParam) {
	for i, c := range path {
		if c == '}' {
			all = append(all, known[path[:i+1]])
		}
	}
	return all
}

// parameters documents the path, the query and the headers of a request.
func (s *Spec) parameters(o *Operation) (all []*huma.Param) {
	for _, p := range o.params {
		schema := huma.Schema{Type: huma.TypeString, Format: "uuid"}
		if p.MaxText > 0 {
			schema = TextSchema(1, p.MaxText)
		}
		all = append(all, s.shareParam(p.Component, Param("path", p.Name, p.Description, p.Example, schema)))
	}
	if o.Query != nil {
		for _, p := range o.Query.parameters(s) {
			if p.Name == "page_size" || p.Name == "page_token" {
				p = s.shareParam(p.Name, p)
			}
			all = append(all, p)
		}
	}
	if o.Keyed {
		all = append(all, s.shareParam("Idempotency-Key", idempotencyKeyParam()))
	}
	if o.Match {
		all = append(all, s.shareParam("If-Match", unchangedParam()))
	}
	return append(all, o.Headers...)
}

// shareParam makes a parameter a component of the document, and returns a reference to it. A different parameter of the same name is
// returned unchanged.
func (s *Spec) shareParam(name string, p *huma.Param) *huma.Param {
	switch known := s.params[name]; {
	case known == nil:
		s.params[name] = p
	case !reflect.DeepEqual(known, p):
		return p
	}
	return &huma.Param{Ref: paramPrefix + name}
}

// resolvedParam follows the reference to a parameter, if it is one.
func resolvedParam(doc *huma.OpenAPI, p *huma.Param) *huma.Param {
	if name, is := strings.CutPrefix(p.Ref, paramPrefix); is {
		return doc.Components.Parameters[name]
	}
	return p
}

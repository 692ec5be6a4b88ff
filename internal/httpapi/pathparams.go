package httpapi

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// pathParam is a parameter of paths.
type pathParam struct {
	name, component, description string
	example                      string
	maxText                      int  // the longest text, in bytes; 0: the parameter is a UUID
	logged                       bool // the log names the id
}

// pathParams returns the parameters of a path, in their order. known has them by the path that ends with each.
func pathParams(path string, known map[string]pathParam) (all []pathParam) {
	for i, c := range path {
		if c == '}' {
			all = append(all, known[path[:i+1]])
		}
	}
	return all
}

// parameters documents the path, the query and the headers of a request.
func (s *spec) parameters(o *operation) (all []*huma.Param) {
	for _, p := range o.params {
		schema := huma.Schema{Type: huma.TypeString, Format: "uuid"}
		if p.maxText > 0 {
			schema = textSchema(1, p.maxText)
		}
		all = append(all, s.shareParam(p.component, param("path", p.name, p.description, p.example, schema)))
	}
	if o.query != nil {
		for _, p := range o.query.parameters(s) {
			if p.Name == "page_size" || p.Name == "page_token" {
				p = s.shareParam(p.Name, p)
			}
			all = append(all, p)
		}
	}
	if o.keyed {
		all = append(all, s.shareParam("Idempotency-Key", idempotencyKeyParam()))
	}
	if o.match {
		all = append(all, s.shareParam("If-Match", unchangedParam()))
	}
	return append(all, o.headers...)
}

// shareParam makes a parameter a component of the document, and returns a reference to it. A different parameter of the same name is
// returned unchanged.
func (s *spec) shareParam(name string, p *huma.Param) *huma.Param {
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

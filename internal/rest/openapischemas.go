package rest

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// complete says of the schemas, when all are there, what cannot be read from the types: which problems each of those
// of problems is for; that an array is never null; and that answers may have more members one day, but requests not.
func (s *Spec) complete(doc *huma.OpenAPI) {
	s.tellProblemsApart()
	requests := s.ofRequests(doc)
	for name, schema := range s.schemas.Map() {
		walkSchema(schema, func(part *huma.Schema) {
			if part.Type == huma.TypeArray {
				part.Nullable = false
			}
			if part.AdditionalProperties == false && !requests[name] {
				part.AdditionalProperties = nil
			}
		})
	}
}

// WithMembersOf adds the members of an embedded type to a schema: huma leaves out those of types that are not exported.
func WithMembersOf[E any](r huma.Registry, s *huma.Schema) *huma.Schema {
	embedded := huma.SchemaFromType(r, reflect.TypeFor[E]())
	maps.Copy(s.Properties, embedded.Properties)
	s.Required = append(slices.Clone(embedded.Required), s.Required...)
	return s
}

// WithNull allows a member that refers to a schema to be null, too. The schema keeps its name, after which clients name a type.
func WithNull(s *huma.Schema, member string) *huma.Schema {
	p := s.Properties[member]
	s.Properties[member] = &huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
	return s
}

// ofRequests names the schemas that bodies of requests are made of.
func (s *Spec) ofRequests(doc *huma.OpenAPI) map[string]bool {
	names := map[string]bool{}
	var add func(schema *huma.Schema)
	add = func(schema *huma.Schema) {
		walkSchema(schema, func(part *huma.Schema) {
			name := part.Ref[strings.LastIndex(part.Ref, "/")+1:]
			if name != "" && !names[name] {
				names[name] = true
				add(s.schemas.SchemaFromRef(part.Ref))
			}
		})
	}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Post, path.Put, path.Patch, path.Delete} {
			if op == nil || op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Content {
				add(media.Schema)
			}
		}
	}
	return names
}

// walkSchema visits a schema and all that it is made of, but for what it refers to.
func walkSchema(s *huma.Schema, visit func(*huma.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	walkSchema(s.Items, visit)
	walkSchema(s.Not, visit)
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		walkSchema(more, visit)
	}
	for _, p := range s.Properties {
		walkSchema(p, visit)
	}
	for _, some := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, one := range some {
			walkSchema(one, visit)
		}
	}
}

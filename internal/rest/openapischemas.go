package rest

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// complete adds facts to the schemas that reflection cannot find, after all schemas are known: the types of each problem
// schema; arrays that are never null; and closed request bodies, while answers may get more members.
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

// WithMembersOf adds the members of an embedded type to a schema, because huma omits unexported embedded types.
func WithMembersOf[E any](r huma.Registry, s *huma.Schema) *huma.Schema {
	embedded := huma.SchemaFromType(r, reflect.TypeFor[E]())
	maps.Copy(s.Properties, embedded.Properties)
	s.Required = append(slices.Clone(embedded.Required), s.Required...)
	return s
}

// WithNull allows a member that refers to a schema to be null, too. The schema keeps its name, which clients use for a type.
func WithNull(s *huma.Schema, member string) *huma.Schema {
	p := s.Properties[member]
	s.Properties[member] = &huma.Schema{Description: p.Description, AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
	return s
}

// ofRequests returns the names of the schemas in request bodies.
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

// walkSchema visits a schema and all its parts, but does not follow references.
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

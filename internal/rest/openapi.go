package rest

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/invalid"
)

const (
	bearerScheme   = "key"
	schemaPrefix   = "#/components/schemas/"
	headerPrefix   = "#/components/headers/"
	responsePrefix = "#/components/responses/"
	paramPrefix    = "#/components/parameters/"
)

// Document describes an API, its keys, the groups of its operations and its problems.
type Document struct {
	Title, About string
	Keys         string // how to get a key, and the scopes
	Tags         []*huma.Tag
	Kinds        []Kind                 // in the order of the documentation
	Example      func(k Kind) Problemer // an example of a kind with members of its own, or nil
}

func newOpenAPI(doc Document) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: doc.Title, Version: "1", Description: doc.About,
			License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "This server."}},
		Tags:    doc.Tags,
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry(schemaPrefix, schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{bearerScheme: {
				Type: "http", Scheme: "bearer", Description: doc.Keys,
			}},
		},
	}
}

// schemaName names schemas after types, without the ending "View". Generated clients know a FieldError as Fault.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[invalid.FieldError]() {
		return "Fault"
	}
	return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "View")
}

// Spec builds the operations of the OpenAPI document. Headers, problems and parameters that several operations have become components.
type Spec struct {
	schemas   huma.Registry
	headers   map[string]*huma.Header
	responses map[string]*huma.Response
	params    map[string]*huma.Param

	kinds   []Kind
	example func(k Kind) Problemer
	apart   map[string][]any // more types of problems, by the reference of their schema
}

// Schema returns the schema of a value by its type.
func (s *Spec) Schema(of any) *huma.Schema {
	return s.schemas.Schema(reflect.TypeOf(of), true, "")
}

// Response returns a response with the schema of its example. Without an example, it has no content.
func (s *Spec) Response(description string, example any) *huma.Response {
	r := &huma.Response{Description: description, Headers: map[string]*huma.Param{}}
	s.addHeader(r, "X-Request-Id", "Identifies the request in the log.")
	if example != nil {
		r.Content = map[string]*huma.MediaType{"application/json": {Schema: s.Schema(example), Example: PlainJSON(example)}}
	}
	return r
}

// AddSchema makes a schema a component of the document, and returns a reference to it.
func (s *Spec) AddSchema(name string, schema *huma.Schema) *huma.Schema {
	schema.PrecomputeMessages()
	s.schemas.Map()[name] = schema
	return &huma.Schema{Ref: schemaPrefix + name}
}

func textHeader(description string) *huma.Header {
	return &huma.Header{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// addHeader adds a header that has the same meaning in all answers.
func (s *Spec) addHeader(r *huma.Response, name, description string) {
	s.headers[name] = textHeader(description)
	r.Headers[name] = &huma.Header{Ref: headerPrefix + name}
}

func (s *Spec) addRateLimits(r *huma.Response) {
	s.addHeader(r, "RateLimit-Policy", "The rate limits of callers, if the operator has set any: q requests at once, replenished in w seconds.")
	s.addHeader(r, "RateLimit", "The state of each limit: r requests are left, and it is fully replenished in t seconds.")
}

// AddHeader adds a header to one answer.
func AddHeader(r *huma.Response, name, description string) {
	r.Headers[name] = textHeader(description)
}

// Param returns a parameter of the document.
func Param(in, name, description, example string, schema huma.Schema) *huma.Param {
	return &huma.Param{In: in, Name: name, Description: description, Example: example, Schema: &schema, Required: in == "path"}
}

// PlainJSON returns the JSON of an example, so that the document shows the members that are sent.
func PlainJSON(example any) any {
	if example == nil {
		return nil
	}
	text, err := json.Marshal(example)
	if err != nil {
		panic(err) // examples are constants
	}
	return json.RawMessage(text)
}

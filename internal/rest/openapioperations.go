package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/assets"
)

// NewSpec returns a spec that writes to the document of an API.
func NewSpec(a *API, doc Document) *Spec {
	c := a.Document().Components
	c.Headers, c.Responses, c.Parameters = map[string]*huma.Header{}, map[string]*huma.Response{}, map[string]*huma.Param{}
	return &Spec{c.Schemas, c.Headers, c.Responses, c.Parameters, doc.Kinds, doc.Example, map[string][]any{}}
}

// operation documents an operation.
func (s *Spec) operation(o *Operation) *huma.Operation {
	op := &huma.Operation{
		OperationID: o.ID, Method: o.Method, Path: o.Path, Tags: []string{o.Tag}, Summary: o.Summary, Description: o.Description,
		Parameters: s.parameters(o), RequestBody: o.Body, Responses: s.answers(o), Security: []map[string][]string{},
	}
	if o.Finish != nil {
		o.Finish(op.Responses)
	}
	if o.Scope != "" {
		op.Security = append(op.Security, map[string][]string{bearerScheme: {o.Scope}})
	}
	return op
}

// answers returns the success, the problems of the operation, and the problems of every operation with a key.
func (s *Spec) answers(o *Operation) map[string]*huma.Response {
	success := s.Response(o.Answer, o.Example)
	all := map[string]*huma.Response{strconv.Itoa(o.Status): success}
	if o.Scope == "" {
		return all
	}
	s.addRateLimits(success)
	kinds := slices.Concat([]Kind{InvalidRequest}, o.Problems, []Kind{Unauthorized, Forbidden, RateLimited, Unavailable, Internal})
	if o.Method != http.MethodGet { // a body may not be JSON
		kinds = append(kinds, TooLarge, UnsupportedMedia)
		all["400"] = s.problem(http.StatusBadRequest, InvalidRequest)
	}
	byStatus := map[int][]Kind{}
	for _, k := range kinds {
		byStatus[k.Status] = append(byStatus[k.Status], k)
	}
	for status, those := range byStatus {
		all[strconv.Itoa(status)] = s.problem(status, those...)
	}
	return all
}

// OpenAPIPage draws the document, after all operations were added.
func (a *API) OpenAPIPage() *assets.Page {
	var page bytes.Buffer
	encoder := json.NewEncoder(&page)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a.huma.OpenAPI()); err != nil {
		panic(fmt.Errorf("write openapi.json: %w", err)) // a test requests it
	}
	return assets.NewPage(page.Bytes(), "Content-Type", "application/vnd.oai.openapi+json;version=3.1")
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

package httpapi

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// pathParam is a parameter of paths.
type pathParam struct {
	name, component, description string
	text                         bool // it is a recipient, and no id
}

// knownPathParams are all of them, by the path that ends with each.
var knownPathParams = map[string]pathParam{
	pushPath:                                     {"id", "push-id", "The push's id.", false},
	bulkPath + "/{id}":                           {"id", "bulk-change-id", "The bulk change's id.", false},
	recipientsPath + "/{id}":                     {"id", "recipient-id", "The recipient, escaped for a path: a slash is %2F.", true},
	policyPath + "/operations/{id}":              {"id", "policy-operation-id", "The operation's id.", false},
	campaignsPath + "/{id}":                      {"id", "campaign-id", "The campaign's id.", false},
	schedulesPath + "/{id}":                      {"id", "schedule-id", "The schedule's id.", false},
	webhooksPath + "/{id}":                       {"id", "webhook-id", "The webhook's id.", false},
	webhooksPath + "/{id}/deliveries/{delivery}": {"delivery", "delivery-id", "The delivery's id.", false},
	keysPath + "/{id}":                           {"id", "key-id", "The key's id, which is no secret.", false},
	usersPath + "/{id}":                          {"id", "user-id", "The user's id.", false},
	usersPath + "/{id}/sessions/{session}":       {"session", "session-id", "The session's id.", false},
}

// pathParams are the parameters of a path, in their order.
func pathParams(path string) (all []pathParam) {
	for i, c := range path {
		if c == '}' {
			all = append(all, knownPathParams[path[:i+1]])
		}
	}
	return all
}

// parameters documents what is in the path, the query and the headers of a request.
func (s *spec) parameters(o *operation) (all []*huma.Param) {
	for _, p := range o.ids {
		schema, example := huma.Schema{Type: huma.TypeString, Format: "uuid"}, exampleID
		switch {
		case p.text:
			schema, example = textSchema(1, maxRecipient), "user-42"
		case p.name == "delivery":
			example = exampleOtherID
		}
		all = append(all, s.shareParam(p.component, param("path", p.name, p.description, example, schema)))
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
		all = append(all, s.shareParam("Idempotency-Key", idempotencyKey()))
	}
	if o.match {
		all = append(all, s.shareParam("If-Match", unchangedParam()))
	}
	return append(all, o.headers...)
}

// shareParam makes a parameter a component of the document, and returns a reference to it. Another one of the same name stays as it is.
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

package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// The groups of the documentation.
const (
	tagPushes     = "Pushes"
	tagQuota      = "Quota"
	tagLimits     = "Limits"
	tagWebhooks   = "Webhooks"
	tagOperations = "Operations"
)

const bearerScheme = "key"

const about = `sendquota accepts messages to be sent to a person at a future time, promises each one a place in that person's send quota at its send time, and delivers it then.

Times in requests are RFC 3339 with a zone; times in answers are UTC, send times in whole seconds. Every answer bears an X-Request-Id; a harmless one of your own is taken over. Errors are RFC 9457 problems, whose type never changes; an invalid request lists every fault at once, with its place and value.`

func newOpenAPI() *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "sendquota", Version: "1", Description: about,
			License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "This server."}},
		Tags: []*huma.Tag{
			{Name: tagPushes, Description: "Submit, read, cancel and move pushes."},
			{Name: tagQuota, Description: "Look at quotas. Nothing here books anything."},
			{Name: tagLimits, Description: "Speed limits of your own, for whatever you name."},
			{Name: tagWebhooks, Description: "Be told what becomes of pushes, by signed requests to an endpoint of your own."},
			{Name: tagOperations, Description: "For those who run it. /metrics is for Prometheus."},
		},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{bearerScheme: {
				Type: "http", Scheme: "bearer",
				Description: "An API key, made with `sendquota keys create`. Its scopes: " + strings.Join(push.Scopes, ", ") + ".",
			}},
		},
	}
}

// schemaName names schemas after types, without their ending "View". Generated
// clients know a FieldError as Fault.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[invalid.FieldError]() {
		return "Fault"
	}
	return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "View")
}

// secure documents the scope that an operation wants, and what happens without.
func secure(op *huma.Operation, scope string) {
	if scope == "" {
		op.Security = []map[string][]string{}
		return
	}
	op.Security = []map[string][]string{{bearerScheme: {scope}}}
}

// spec makes the parts of operations in the OpenAPI document.
type spec struct{ schemas huma.Registry }

func (s *spec) schema(of any) *huma.Schema {
	return s.schemas.Schema(reflect.TypeOf(of), true, "")
}

func (s *spec) body(of, example any) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: s.schema(of), Example: plain(example)},
	}}
}

func (s *spec) response(description string, of, example any) *huma.Response {
	return &huma.Response{
		Description: description,
		Headers: map[string]*huma.Param{
			"X-Request-Id": {Description: "Names the request in the log.", Schema: &huma.Schema{Type: huma.TypeString}},
		},
		Content: map[string]*huma.MediaType{"application/json": {Schema: s.schema(of), Example: plain(example)}},
	}
}

// responses are a success, the problems that are special to an operation, and
// those that any operation with a key has.
func (s *spec) responses(status int, description string, of, example any, special ...kind) map[string]*huma.Response {
	all := map[string]*huma.Response{strconv.Itoa(status): s.response(description, of, example)}
	if len(special) == 0 {
		return all
	}
	for _, k := range append(special, unauthorized, forbidden, rateLimited, unavailable, internal) {
		s.addProblem(all, k.Status, k)
	}
	if slices.Contains(special, tooLarge) { // there is a body, which may be no JSON
		s.addProblem(all, http.StatusBadRequest, invalidRequest)
	}
	for _, res := range all {
		for name, says := range map[string]string{
			"RateLimit-Policy": "The limits of callers, where the operator has set any: q at once, which comes back in w seconds.",
			"RateLimit":        "How they stand: r is left, and all of it is back in t seconds.",
		} {
			res.Headers[name] = &huma.Param{Description: says, Schema: &huma.Schema{Type: huma.TypeString}}
		}
	}
	return all
}

// addProblem adds a kind of problem to the answers of a status.
func (s *spec) addProblem(all map[string]*huma.Response, status int, k kind) {
	example := exampleProblem(k)
	example.problem().Status = status
	name := strconv.Itoa(status)
	if all[name] == nil {
		all[name] = s.response("", Problem{}, nil)
		all[name].Content = map[string]*huma.MediaType{"application/problem+json": {Examples: map[string]*huma.Example{}}}
	}
	res, media := all[name], all[name].Content["application/problem+json"]
	res.Description = strings.TrimPrefix(res.Description+"\n\n`"+k.Name+"`: "+k.When, "\n\n")
	media.Examples[k.Name] = &huma.Example{Summary: k.Title, Value: plain(example)}
	media.Schema = s.problems(func(k kind) bool { return media.Examples[k.Name] != nil })
	for _, header := range headersOf(k) {
		res.Headers[header] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeString}}
	}
}

// headersOf lists the headers that come with a kind of problem.
func headersOf(k kind) []string {
	switch k {
	case unauthorized:
		return []string{"WWW-Authenticate"}
	case rateLimited:
		return []string{"Retry-After"}
	case unavailable:
		return []string{"Retry-After"}
	}
	return nil
}

// booked adds what is special to an answer to a submit.
func (s *spec) booked(all map[string]*huma.Response) map[string]*huma.Response {
	headers := all["201"].Headers
	headers["Location"] = &huma.Param{Description: "The push's path. Absent with validate_only.", Schema: &huma.Schema{Type: huma.TypeString}}
	headers["Idempotency-Replayed"] = &huma.Param{
		Description: "true, if a request with the same Idempotency-Key made the push before.", Schema: &huma.Schema{Type: huma.TypeString},
	}
	return all
}

// bookedBatch adds what is special to an answer to a batch: among others, that
// to an atomic one without places.
func (s *spec) bookedBatch(all map[string]*huma.Response) map[string]*huma.Response {
	all["200"].Headers["Idempotency-Replayed"] = &huma.Param{
		Description: "true, if a request with the same Idempotency-Key made all the accepted pushes before.", Schema: &huma.Schema{Type: huma.TypeString},
	}
	all["409"] = s.response("`quota-exceeded`, or `tenant-cap-exceeded` where the tenant's caps alone are in the way: the batch is atomic and not all of its pushes have a place. Nothing was booked.", Problem{}, nil)
	all["409"].Content = map[string]*huma.MediaType{
		"application/problem+json": {Schema: s.schema(batchProblem{}), Example: plain(exampleBatchProblem())},
	}
	return all
}

func (s *spec) param(in, name, description string, schema *huma.Schema) *huma.Param {
	return &huma.Param{In: in, Name: name, Description: description, Schema: schema, Required: in == "path"}
}

func (s *spec) query(name, description, example string) *huma.Param {
	p := s.param("query", name, description, &huma.Schema{Type: huma.TypeString})
	if example != "" {
		p.Example = example
	}
	return p
}

func (s *spec) enum(name, description string, words ...string) *huma.Param {
	schema := &huma.Schema{Type: huma.TypeString}
	for _, w := range words {
		schema.Enum = append(schema.Enum, w)
	}
	return s.param("query", name, description, schema)
}

func (s *spec) time(name, description string) *huma.Param {
	p := s.param("query", name, description+" RFC 3339 with a zone.", &huma.Schema{Type: huma.TypeString, Format: "date-time"})
	p.Example = timeExample
	return p
}

func (s *spec) int(name, description string, fallback, least, most float64) *huma.Param {
	return s.param("query", name, description, &huma.Schema{Type: huma.TypeInteger, Default: fallback, Minimum: &least, Maximum: &most})
}

func (s *spec) pushID() *huma.Param {
	p := s.param("path", "id", "The push's id.", &huma.Schema{Type: huma.TypeString, Format: "uuid"})
	p.Example = exampleID
	return p
}

func (s *spec) webhookID() *huma.Param {
	p := s.param("path", "id", "The webhook's id.", &huma.Schema{Type: huma.TypeString, Format: "uuid"})
	p.Example = exampleID
	return p
}

func (s *spec) recipient() *huma.Param {
	least, most := 1, maxRecipient
	p := s.param("path", "id", "The recipient, escaped as a part of a path: a slash is %2F.",
		&huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most})
	p.Example = "user-42"
	return p
}

func (s *spec) validateOnly() *huma.Param {
	return s.param("query", "validate_only", "Answer as the live call would, but book nothing.", &huma.Schema{Type: huma.TypeBoolean, Default: false})
}

func (s *spec) idempotencyKey() *huma.Param {
	least, most := 1, 255
	p := s.param("header", "Idempotency-Key", "Makes the request safe to repeat: the same key and body get the same answer, another body is refused.",
		&huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most})
	p.Example = "order-1234-reminder"
	return p
}

// plain turns an example into what its JSON says, so that it is shown with the
// members that are really sent.
func plain(example any) any {
	if example == nil {
		return nil
	}
	text, err := json.Marshal(example)
	if err != nil {
		panic(err) // examples are constants of this package
	}
	return json.RawMessage(text)
}

// openAPIPage serves the document, which does not change any more.
func (a *api) openAPIPage() http.Handler {
	var page bytes.Buffer
	encoder := json.NewEncoder(&page)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a.huma.OpenAPI()); err != nil {
		panic(fmt.Errorf("write openapi.json: %w", err)) // at boot, not when it is asked for
	}
	return newStatic(page.Bytes(), "Content-Type", "application/vnd.oai.openapi+json;version=3.1")
}

// sortedKeys lists the names of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

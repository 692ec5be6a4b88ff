package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// The groups of the documentation.
const (
	tagPushes     = "Pushes"
	tagQuota      = "Quota"
	tagPolicy     = "Policy"
	tagRecipients = "Recipients"
	tagLimits     = "Limits"
	tagWebhooks   = "Webhooks"
	tagCampaigns  = "Campaigns"
	tagSchedules  = "Schedules"
	tagKeys       = "Keys"
	tagUsers      = "Users"
	tagChannels   = "Channels"
	tagRecords    = "Records"
	tagOperations = "Operations"
)

const (
	bearerScheme   = "key"
	schemaPrefix   = "#/components/schemas/"
	headerPrefix   = "#/components/headers/"
	responsePrefix = "#/components/responses/"
	paramPrefix    = "#/components/parameters/"
)

const about = `sendquota accepts messages for a person at a future time, reserves a place in that person's send quota at the send time, and delivers each message then.

Times in requests are RFC 3339 with a zone; times in answers are UTC, send times in whole seconds. Every answer has an X-Request-Id; a valid one in the request is kept. Errors are RFC 9457 problems with stable types; the answer to an invalid request lists every error, with its location and value.`

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
			{Name: tagQuota, Description: "Read quotas. No operation here books anything."},
			{Name: tagPolicy, Description: "Set your own rules, categories and quiet hours."},
			{Name: tagRecipients, Description: "Describe recipients: time zones, addresses, opt-outs, own limits."},
			{Name: tagLimits, Description: "Use your own rate limits, for any key."},
			{Name: tagCampaigns, Description: "Send one message to everyone in an audience."},
			{Name: tagSchedules, Description: "Send a push or a campaign repeatedly, by cron."},
			{Name: tagRecords, Description: "List and count what was sent and refused."},
			{Name: tagWebhooks, Description: "Receive the events of pushes as signed requests to your endpoint."},
			{Name: tagChannels, Description: "Read the state of the channels."},
			{Name: tagKeys, Description: "Create API keys for the tenant, with fewer scopes or a limited lifetime."},
			{Name: tagUsers, Description: "Manage the users of the console and their sessions."},
			{Name: tagOperations, Description: "For operators. /metrics is for Prometheus."},
		},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry(schemaPrefix, schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{bearerScheme: {
				Type: "http", Scheme: "bearer",
				Description: "An API key, created with `sendquota keys create` or by another key. Its scopes: " + strings.Join(push.Scopes, ", ") + ".",
			}},
		},
	}
}

// schemaName names schemas after types, without their ending "View". Generated clients know a FieldError as Fault.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[invalid.FieldError]() {
		return "Fault"
	}
	return strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "View")
}

// spec makes the parts of operations in the OpenAPI document. Headers, problems and
// parameters that many operations have are components.
type spec struct {
	schemas   huma.Registry
	headers   map[string]*huma.Header
	responses map[string]*huma.Response
	params    map[string]*huma.Param
}

func newSpec(c *huma.Components) *spec {
	c.Headers, c.Responses, c.Parameters = map[string]*huma.Header{}, map[string]*huma.Response{}, map[string]*huma.Param{}
	return &spec{c.Schemas, c.Headers, c.Responses, c.Parameters}
}

func (s *spec) schema(of any) *huma.Schema {
	return s.schemas.Schema(reflect.TypeOf(of), true, "")
}

// response has the schema of its example. Without an example, it has no content.
func (s *spec) response(description string, example any) *huma.Response {
	r := &huma.Response{Description: description, Headers: map[string]*huma.Param{}}
	s.addHeader(r, "X-Request-Id", "Identifies the request in the log.")
	if example != nil {
		r.Content = map[string]*huma.MediaType{"application/json": {Schema: s.schema(example), Example: plain(example)}}
	}
	return r
}

func textHeader(description string) *huma.Header {
	return &huma.Header{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// addHeader adds a header that means the same in all answers.
func (s *spec) addHeader(r *huma.Response, name, description string) {
	s.headers[name] = textHeader(description)
	r.Headers[name] = &huma.Header{Ref: headerPrefix + name}
}

func (s *spec) addRateLimits(r *huma.Response) {
	s.addHeader(r, "RateLimit-Policy", "The rate limits of callers, if the operator has set any: q requests at once, replenished in w seconds.")
	s.addHeader(r, "RateLimit", "The state of each limit: r requests are left, and it is fully replenished in t seconds.")
}

// addHeader adds a header of this answer.
func addHeader(r *huma.Response, name, description string) {
	r.Headers[name] = textHeader(description)
}

// operation documents an operation.
func (s *spec) operation(o *operation) *huma.Operation {
	op := &huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Tags: []string{o.tag}, Summary: o.summary, Description: o.description,
		Parameters: s.parameters(o), RequestBody: o.body, Responses: s.answers(o), Security: []map[string][]string{},
	}
	if o.finish != nil {
		o.finish(op.Responses)
	}
	if o.scope != "" {
		op.Security = append(op.Security, map[string][]string{bearerScheme: {o.scope}})
	}
	return op
}

// answers are a success, the problems that are special to an operation, and those that any operation with a key has.
func (s *spec) answers(o *operation) map[string]*huma.Response {
	success := s.response(o.answer, o.example)
	all := map[string]*huma.Response{strconv.Itoa(o.status): success}
	if o.scope == "" {
		return all
	}
	s.addRateLimits(success)
	kinds := slices.Concat([]kind{invalidRequest}, o.problems, []kind{unauthorized, forbidden, rateLimited, unavailable, internal})
	if o.method != http.MethodGet { // there may be a body, which may be no JSON
		kinds = append(kinds, tooLarge, unsupportedMedia)
		all["400"] = s.problem(http.StatusBadRequest, invalidRequest)
	}
	byStatus := map[int][]kind{}
	for _, k := range kinds {
		byStatus[k.Status] = append(byStatus[k.Status], k)
	}
	for status, those := range byStatus {
		all[strconv.Itoa(status)] = s.problem(status, those...)
	}
	return all
}

// booked adds what is special to an answer to a submit.
func booked(all map[string]*huma.Response) {
	addHeader(all["201"], "Location", "The push's path. Absent with validate_only.")
	addHeader(all["201"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created the push.")
}

// bookedBatch adds what is special to an answer to a batch: among others, that to an atomic one without places.
func (s *spec) bookedBatch(all map[string]*huma.Response) {
	addHeader(all["200"], "Idempotency-Replayed", "true if an earlier request with the same Idempotency-Key created all the accepted pushes.")
	refused := s.response("`quota-exceeded`, or `tenant-cap-exceeded` if only the tenant's caps refuse: the batch is atomic, and some of its pushes have no place. Nothing was booked.", nil)
	example := (&refusedBatch{batchView{Refused: 2, Results: []resultView{
		{Index: 0, Status: quotaExceeded.Status, Problem: quotaProblemOf(exampleRefusal)},
		{Index: 1, Status: batchRefused.Status, Problem: exampleProblem(batchRefused)},
	}}}).problem()
	refused.Content = map[string]*huma.MediaType{
		mediaProblem: {Schema: s.schema(batchProblem{}), Example: plain(example)},
	}
	all["409"] = s.share("AtomicBatchRefused", refused)
}

func param(in, name, description, example string, schema huma.Schema) *huma.Param {
	return &huma.Param{In: in, Name: name, Description: description, Example: example, Schema: &schema, Required: in == "path"}
}

func idempotencyKey() *huma.Param {
	return param("header", "Idempotency-Key", "Makes the request safe to repeat for 30 days: the same key and body return the same answer; the same key with another body is refused.",
		"order-1234-reminder", textSchema(1, 255))
}

// plain turns an example into what its JSON says, so that it is shown with the members that are really sent.
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

// openAPIPage is the document, which does not change once all operations are in it.
func (a *api) openAPIPage() *assets.Page {
	var page bytes.Buffer
	encoder := json.NewEncoder(&page)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a.huma.OpenAPI()); err != nil {
		panic(fmt.Errorf("write openapi.json: %w", err)) // a test asks for it
	}
	return assets.NewPage(page.Bytes(), "Content-Type", "application/vnd.oai.openapi+json;version=3.1")
}

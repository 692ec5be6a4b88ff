package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/invalid"
)

var update = flag.Bool("update", false, "write the served OpenAPI to openapi.json")

func newTestAPI() *api { return New(nil, everything{}, Config{}).(*api) }

// TestOpenAPIFile holds the served document to the committed one. Run with
// -update after a change.
func TestOpenAPIFile(t *testing.T) {
	r := ask(t, newTestAPI(), "GET", "/openapi.json", "").must(t, 200)
	var served bytes.Buffer
	if err := json.Indent(&served, []byte(r.text), "", "  "); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", served.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(served.Bytes(), committed) {
		t.Error("openapi.json is not what is served; look at the change and run: go test ./internal/httpapi -run OpenAPIFile -update")
	}
}

// TestOpenAPIIsComplete: every route under /v1 is documented with its key, its
// problems, and examples that fit their schemas.
func TestOpenAPIIsComplete(t *testing.T) {
	a := newTestAPI()
	doc := a.huma.OpenAPI()
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	for _, op := range a.operations {
		name := op.OperationID
		if op.Summary == "" || len(op.Tags) != 1 {
			t.Errorf("%s has no summary or group", name)
		}
		if !strings.HasPrefix(op.Path, "/v1/") {
			continue
		}
		if op.Description == "" || len(op.Security) != 1 || len(op.Security[0][bearerScheme]) != 1 {
			t.Errorf("%s lacks a description or a scope", name)
		}
		for _, status := range []string{"401", "403", "422", "500", "503"} {
			if op.Responses[status] == nil {
				t.Errorf("%s does not mention %s", name, status)
			}
		}
		for _, p := range op.Parameters {
			if p.Description == "" || p.Schema == nil {
				t.Errorf("%s: parameter %s is not described", name, p.Name)
			}
		}
		if op.RequestBody != nil {
			fits(t, doc, name+" request", op.RequestBody.Content["application/json"], huma.ModeWriteToServer)
		}
		for status, r := range op.Responses {
			for _, media := range r.Content {
				fits(t, doc, name+" "+status, media, huma.ModeReadFromServer)
			}
		}
	}
}

// fits checks the examples of a body against its schema.
func fits(t *testing.T, doc *huma.OpenAPI, where string, media *huma.MediaType, mode huma.ValidateMode) {
	t.Helper()
	var examples []any
	if media.Example != nil {
		examples = append(examples, media.Example)
	}
	for _, e := range media.Examples {
		examples = append(examples, e.Value)
	}
	if len(examples) == 0 {
		t.Errorf("%s has no example", where)
	}
	for _, e := range examples {
		var v any
		if err := json.Unmarshal(e.(json.RawMessage), &v); err != nil {
			t.Fatal(err)
		}
		if errs := validate(doc.Components.Schemas, media.Schema, mode, v); len(errs) > 0 {
			t.Errorf("%s: the example does not fit: %v\n%s", where, errs, e)
		}
	}
}

func validate(schemas huma.Registry, s *huma.Schema, mode huma.ValidateMode, v any) []error {
	res := &huma.ValidateResult{}
	huma.Validate(schemas, s, huma.NewPathBuffer([]byte{}, 0), mode, v, res)
	return res.Errors
}

// TestDecoderAgreesWithSchema: what the schema refuses, the decoder refuses at
// the same places, and what it accepts, the decoder accepts. Where they differ
// on purpose, the table says so.
func TestDecoderAgreesWithSchema(t *testing.T) {
	a := newTestAPI()
	schemas := a.huma.OpenAPI().Components.Schemas
	for _, c := range []struct {
		of   any
		read func(*reader) invalid.FieldErrors
		good string
		more string // what only the decoder faults
	}{
		{newPush{}, func(r *reader) invalid.FieldErrors { return readForm(r).faults }, string(exampleRequest().(json.RawMessage)), ""},
		{newTime{}, func(r *reader) invalid.FieldErrors { return readMove(r).faults }, `{"send_at":"2026-12-01T09:00:00Z"}`, ""},
		{question{}, func(r *reader) invalid.FieldErrors { return readQuestion(r).faults }, `{"recipient":"a","channel":"push","category":"","send_at":"2026-12-01T09:00:00Z"}`, ""},
		{newTake{}, func(r *reader) invalid.FieldErrors { return readTake(r).faults },
			`{"key":"a","cost":2,"dry_run":true,"limits":[{"algorithm":"token_bucket","limit":5,"per":"1m30s","burst":3,"refill":"interval"},{"key":"b","algorithm":"sliding_window","limit":5,"per":"1.5s","precision":"10ms"},` +
				`{"algorithm":"fixed_window","limit":5,"per":"1.5s","aligned":true}]}`, "key"}, // it is required where a limit has none
		{newWebhook{}, func(r *reader) invalid.FieldErrors { return readWebhook(r).faults }, `{"url":"https://example.com","events":["push.sent","push.failed"]}`, ""},
		{sinceForm{}, func(r *reader) invalid.FieldErrors { _, f := readSince(r); return f.faults }, `{"since":"2026-12-01T09:00:00Z"}`, ""},
		{newBatch{}, batchFaults, `{"atomic":true,"pushes":[{"recipient":"a","message":{}},{"recipient":"b","message":{"title":"x"}}]}`, ""},
	} {
		schema := schemas.Schema(reflect.TypeOf(c.of), true, "")
		for _, text := range variants(t, c.good) {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{}
			for _, err := range validate(schemas, schema, huma.ModeWriteToServer, v) {
				want[whereOf(err.(*huma.ErrorDetail))] = true
			}
			got := map[string]bool{}
			for _, f := range c.read(newReader([]byte(text))) {
				got[f.Field] = true
			}
			if c.more != "" && !want[c.more] && text != c.good {
				delete(got, c.more)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%T: the decoder faults %v, the schema %v:\n%s", c.of, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), text)
			}
		}
	}
}

func batchFaults(r *reader) invalid.FieldErrors {
	b := readBatch(r)
	all := faults{list: b.faults}
	for i, f := range b.forms {
		all.addAll(strings.TrimPrefix(place(i), "body."), f.faults)
	}
	return all.list
}

// whereOf is where the schema finds a fault. It blames the object for a member
// that is missing; the decoder names the member.
func whereOf(e *huma.ErrorDetail) string {
	if name, ok := strings.CutPrefix(e.Message, "expected required property "); ok {
		name, _, _ = strings.Cut(name, " ")
		return strings.TrimPrefix(under(e.Location, name), ".")
	}
	return e.Location
}

// variants are texts in which each member in turn is missing or has another
// value, on the first two levels.
func variants(t *testing.T, good string) []string {
	t.Helper()
	values := []string{`""`, `"x"`, `0`, `-1.5`, `true`, `{}`, `[]`, `[1]`, `{"a":1}`, `"2026-12-01T09:00:00Z"`, `"2026-12-01T09:00:00"`, `"` + strings.Repeat("x", 129) + `"`, `"` + strings.Repeat("x", 1000) + `"`}
	texts := []string{good, `{}`, `{"foo":1}`}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(good), &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		with := func(value json.RawMessage) {
			changed := maps.Clone(object)
			if changed[name] = value; value == nil {
				delete(changed, name)
			}
			text, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		with(nil)
		for _, v := range values {
			with(json.RawMessage(v))
		}
		if name == "message" {
			for _, v := range values {
				with(json.RawMessage(`{"title":` + v + `,"body":"b","data":` + v + `,"other":` + v + `}`))
			}
		}
		if name == "limits" {
			for _, v := range values {
				with(json.RawMessage(`[{"algorithm":"fixed_window","limit":5,"per":"1s"},` + v + `,{"algorithm":` + v + `,"limit":` + v + `,"per":` + v + `,"burst":` + v + `,"precision":` + v + `,"key":` + v + `,"aligned":` + v + `,"refill":` + v + `,"foo":` + v + `}]`))
			}
		}
		if name == "pushes" {
			for _, v := range values {
				with(json.RawMessage(`[{"recipient":"a","message":{}},` + v + `,{"recipient":` + v + `,"foo":` + v + `}]`))
			}
		}
	}
	return texts
}

// TestDocsPage: every kind of problem is on the reading page and
// in the contract's form.
func TestDocsPage(t *testing.T) {
	a := newTestAPI()
	r := ask(t, a, "GET", "/docs", "").must(t, 200)
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Errorf("%v", r.header)
	}
	for _, k := range kinds() {
		if !strings.Contains(r.text, "<code>"+k.Name+"</code>") {
			t.Errorf("no %s", k.Name)
		}
	}
	for _, op := range a.operations {
		if !strings.Contains(r.text, `id="`+op.OperationID+`"`) {
			t.Errorf("no %s", op.OperationID)
		}
	}
	for _, foreign := range []string{`="http://`, `="https://`, "<link", "<script", "src=", "@import", "url("} {
		if strings.Contains(r.text, foreign) {
			t.Errorf("the page needs %s", foreign)
		}
	}
	if r := ask(t, a, "GET", "/", ""); r.status != 302 || r.header.Get("Location") != "/docs" {
		t.Errorf("/ answers %d %v", r.status, r.header)
	}
}

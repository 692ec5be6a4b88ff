package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/rest"
)

var update = flag.Bool("update", false, "write the served OpenAPI to openapi.json")

func newTestAPI() *rest.API { return New(nil, everything{}, Config{}).(*rest.API) }

// TestOpenAPIFile holds the served document to the committed one. Run with -update after a change.
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
		t.Error("openapi.json differs from the served document; check the change and run: go test ./internal/httpapi -run OpenAPIFile -update")
	}
}

// TestOpenAPI_Complete: every route under /v1 is documented with its key, its problems, and examples that fit their
// schemas.
func TestOpenAPI_Complete(t *testing.T) {
	a := newTestAPI()
	doc := a.Document()
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	for _, op := range operationsOf(a.Document()) {
		name := op.OperationID
		if op.Summary == "" || len(op.Tags) != 1 {
			t.Errorf("%s has no summary or group", name)
		}
		if !strings.HasPrefix(op.Path, "/v1/") {
			continue
		}
		if op.Description == "" || len(op.Security) != 1 || len(op.Security[0]["key"]) != 1 {
			t.Errorf("%s lacks a description or a scope", name)
		}
		for _, status := range []string{"401", "403", "422", "500", "503"} {
			if op.Responses[status] == nil {
				t.Errorf("%s does not mention %s", name, status)
			}
		}
		for _, p := range op.Parameters {
			if name, is := strings.CutPrefix(p.Ref, "#/components/parameters/"); is {
				p = doc.Components.Parameters[name]
			}
			if p.Description == "" || p.Schema == nil {
				t.Errorf("%s: parameter %s is not described", name, p.Name)
			}
		}
		if op.RequestBody != nil {
			for _, media := range op.RequestBody.Content {
				fits(t, doc, name+" request", media, huma.ModeWriteToServer)
			}
		}
		for status, r := range op.Responses {
			for _, media := range resolvedResponse(doc, r).Content {
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

// TestDocsPage: every kind of problem is on the reading page and in the contract's form.
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
	for _, op := range operationsOf(a.Document()) {
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

package httpapi

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
)

// reply is an answer, with its body as JSON.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func ask(t *testing.T, h http.Handler, method, target, body string, headers ...string) reply {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	got := reply{status: rec.Code, header: rec.Header(), text: rec.Body.String()}
	if media := got.header.Get("Content-Type"); strings.Contains(media, "json") && media != "application/x-ndjson" && got.header.Get("Content-Encoding") == "" && got.text != "" {
		if !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("%s %s answers no JSON: %s", method, target, got.text)
		}
		_ = json.Unmarshal(rec.Body.Bytes(), &got.body) // a number may be beyond float64
		fitsDocument(t, r, rec)
	}
	return got
}

// servedAPI is the served document, and a router of its operations.
type servedAPI struct {
	doc        *huma.OpenAPI
	router     *chi.Mux
	operations []*huma.Operation
}

var servedDocument = sync.OnceValue(func() servedAPI {
	d := servedAPI{doc: newTestAPI().Document(), router: chi.NewMux()}
	d.operations = operationsOf(d.doc)
	for _, op := range d.operations {
		d.router.MethodFunc(op.Method, op.Path, func(http.ResponseWriter, *http.Request) {})
	}
	return d
})

// operationsOf lists the operations of a document.
func operationsOf(doc *huma.OpenAPI) (all []*huma.Operation) {
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	return all
}

// fitsDocument compares every answer to a test with its schema in the document.
func fitsDocument(t *testing.T, r *http.Request, rec *httptest.ResponseRecorder) {
	t.Helper()
	doc := servedDocument()
	route := chi.NewRouteContext()
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	if !doc.router.Match(route, r.Method, path) {
		return
	}
	i := slices.IndexFunc(doc.operations, func(op *huma.Operation) bool { return op.Method == r.Method && op.Path == route.RoutePattern() })
	if i < 0 {
		return // a page
	}
	response := doc.operations[i].Responses[strconv.Itoa(rec.Code)]
	if response == nil {
		t.Errorf("%s %s answers %d, which is not documented", r.Method, route.RoutePattern(), rec.Code)
		return
	}
	media := resolvedResponse(doc.doc, response).Content[rec.Header().Get("Content-Type")]
	if media == nil {
		t.Errorf("%s %s answers %d with a %s, which is not documented", r.Method, route.RoutePattern(), rec.Code, rec.Header().Get("Content-Type"))
		return
	}
	var v any
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		return // a number beyond float64
	}
	if errs := validate(doc.doc.Components.Schemas, media.Schema, huma.ModeReadFromServer, v); len(errs) > 0 {
		t.Errorf("%s %s answers %d, which does not fit its schema: %v\n%.2000s", r.Method, route.RoutePattern(), rec.Code, errs, rec.Body)
	}
}

// must demands a status, and for a problem its name.
func (r reply) must(t *testing.T, status int, name ...string) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.text)
	}
	for _, n := range name {
		if r.body["type"] != "urn:sendquota:problem:"+n {
			t.Fatalf("problem %v, want %s: %s", r.body["type"], n, r.text)
		}
		if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
			t.Fatalf("a problem of type %s", ct)
		}
		if r.body["status"] != float64(status) || r.body["title"] == "" || r.body["detail"] == "" {
			t.Fatalf("an incomplete problem: %s", r.text)
		}
	}
	return r
}

// at walks into the body by names and indexes.
func (r reply) at(t *testing.T, path ...any) any {
	t.Helper()
	var v any = r.body
	for _, p := range path {
		switch step := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			var ok bool
			if v, ok = m[step]; !ok {
				t.Fatalf("no %v in %s", path, r.text)
			}
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				t.Fatalf("no %v in %s", path, r.text)
			}
			v = l[step]
		}
	}
	return v
}

// resolvedResponse follows the reference to a response, if it is one.
func resolvedResponse(doc *huma.OpenAPI, r *huma.Response) *huma.Response {
	if name, is := strings.CutPrefix(r.Ref, "#/components/responses/"); is {
		return doc.Components.Responses[name]
	}
	return r
}

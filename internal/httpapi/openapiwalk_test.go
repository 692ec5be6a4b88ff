package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// served is the document as callers get it.
func served(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(ask(t, newTestAPI(), "GET", "/openapi.json", "").must(t, 200).text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// component returns the component that a reference names.
func component(t *testing.T, doc map[string]any, ref string) map[string]any {
	t.Helper()
	var v any = doc
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	found, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%s leads nowhere", ref)
	}
	return found
}

// walkDoc visits every object of the document below a place, and once each what it refers to. Examples are no part of
// it.
func walkDoc(t *testing.T, doc map[string]any, v any, place string, seen map[string]bool, visit func(place string, object map[string]any)) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		visit(place, v)
		if ref, ok := v["$ref"].(string); ok && !seen[ref] {
			seen[ref] = true
			walkDoc(t, doc, component(t, doc, ref), ref, seen, visit)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "example" && name != "examples" {
				walkDoc(t, doc, v[name], place+"/"+name, seen, visit)
			}
		}
	case []any:
		for i, one := range v {
			walkDoc(t, doc, one, fmt.Sprintf("%s/%d", place, i), seen, visit)
		}
	}
}

// halves walks over the schemas of all requests, and over those of all answers.
func halves(t *testing.T, doc map[string]any, requests, answers func(place string, schema map[string]any)) {
	t.Helper()
	of := map[string]func(string, map[string]any){"requestBody": requests, "responses": answers, "parameters": requests}
	seen := map[string]map[string]bool{"requestBody": {}, "responses": {}, "parameters": {}}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			for part, visit := range of {
				walkDoc(t, doc, op.(map[string]any)[part], method+" "+path+" "+part, seen[part], visit)
			}
		}
	}
}

// mayBeNull reports whether a schema allows null.
func mayBeNull(schema map[string]any) bool {
	types, many := schema["type"].([]any)
	enum, _ := schema["enum"].([]any)
	return many && slices.Contains(types, any("null")) || schema["nullable"] == true || slices.Contains(enum, any(nil))
}

// TestOpenAPI_Nulls: no schema of a request says of a part with a type that it may be null. Those without a type take
// anything; TestBody_NullMembers asks the server about both.
func TestOpenAPI_Nulls(t *testing.T) {
	visited := 0
	halves(t, served(t), func(place string, schema map[string]any) {
		if visited++; mayBeNull(schema) {
			t.Errorf("%s may be null", place)
		}
	}, func(string, map[string]any) {})
	if visited < 100 {
		t.Errorf("only %d parts of requests", visited)
	}
}

// TestOpenAPI_Open: answers may have more members one day, and requests have those that are named, or say that they may
// have any.
func TestOpenAPI_Open(t *testing.T) {
	closed, open := 0, 0
	halves(t, served(t), func(place string, schema map[string]any) {
		if schema["type"] != "object" {
			return
		}
		if more, said := schema["additionalProperties"]; !said {
			t.Errorf("%s of a request does not say whether it may have more members", place)
		} else if more == false {
			closed++
		}
	}, func(place string, schema map[string]any) {
		open++
		if schema["additionalProperties"] == false || schema["unevaluatedProperties"] == false {
			t.Errorf("%s of an answer may have no more members", place)
		}
	})
	if closed < 7 || open < 500 {
		t.Errorf("%d closed requests, %d parts of answers", closed, open)
	}
}

// TestOpenAPI_Discriminators: where there are several schemas, a member that all of them have tells which, and no two
// of them are for the same value.
func TestOpenAPI_Discriminators(t *testing.T) {
	doc := served(t)
	found := 0
	walkDoc(t, doc, doc, "", map[string]bool{}, func(place string, schema map[string]any) {
		if _, any := schema["anyOf"]; any {
			t.Errorf("%s has anyOf", place)
		}
		one, several := schema["oneOf"].([]any)
		if !several {
			return
		}
		found++
		discriminator, _ := schema["discriminator"].(map[string]any)
		name, _ := discriminator["propertyName"].(string)
		mapping, _ := discriminator["mapping"].(map[string]any)
		if name != "type" || len(mapping) < len(one) {
			t.Errorf("%s has the discriminator %v", place, discriminator)
			return
		}
		var refs []string
		for _, branch := range one {
			refs = append(refs, branch.(map[string]any)["$ref"].(string))
		}
		for value, ref := range mapping {
			if !slices.Contains(refs, ref.(string)) {
				t.Errorf("%s: %s leads to %s, which is none of %v", place, value, ref, refs)
			}
			for _, ref2 := range refs { // the value fits the one that it leads to, and no other
				branch := component(t, doc, ref2)
				property, _ := branch["properties"].(map[string]any)[name].(map[string]any)
				enum, only := property["enum"].([]any)
				not, _ := property["not"].(map[string]any)
				others, _ := not["enum"].([]any)
				fits := property != nil && (!only || slices.Contains(enum, any(value))) && !slices.Contains(others, any(value))
				if fits != (ref2 == ref) || !slices.Contains(branch["required"].([]any), any(name)) {
					t.Errorf("%s: %s leads to %s; whether it fits %s: %t", place, value, ref, ref2, fits)
				}
			}
		}
	})
	if found < 5 {
		t.Errorf("only %d places with several schemas", found)
	}
}

// TestBody_NullMembers sends null to the real server in the place of every member of every request, at every depth: it is
// refused exactly where the schema does not allow it.
func TestBody_NullMembers(t *testing.T) {
	b := setup(t)
	a := newTestAPI()
	schemas := a.huma.OpenAPI().Components.Schemas
	// What examples leave out, so that every member of every schema is there.
	more := map[string]string{
		"submit-push": `{"recipient":"r","message":{"title":"t","body":"b","html":"h","aps":{},"data":{"a":1},"other":1},"channel":"push","category":"c","to":"+4512345678",
			"send_at":"SOON","expires_at":"LATER","on_conflict":"defer","latest":"LATER","metadata":{"a":1}}`,
		"take-limits":   `{"key":"k","cost":1,"dry_run":true,"limits":[{"key":"k","algorithm":"token_bucket","limit":5,"per":"1s","burst":3,"refill":"interval"},{"key":"k","algorithm":"fixed_window","limit":5,"per":"1s","aligned":true},{"key":"k","algorithm":"sliding_window","limit":5,"per":"1s","precision":"100ms"}]}`,
		"refund-limits": `{"key":"k","cost":1,"dry_run":true,"limits":[{"key":"k","algorithm":"leaky_bucket","limit":5,"per":"1s"}]}`,
		"reset-limits":  `{"key":"k","cost":1,"dry_run":true,"limits":[{"key":"k","algorithm":"leaky_bucket","limit":5,"per":"1s"}]}`,
		"check-quota":   `{"recipient":"r","channel":"push","category":"c","send_at":"SOON"}`,
	}
	more["submit-batch"] = `{"atomic":true,"pushes":[` + more["submit-push"] + `]}`
	bodies, nulls := 0, 0
	for _, op := range a.operations {
		if op.RequestBody == nil {
			continue
		}
		bodies++
		media := op.RequestBody.Content["application/json"]
		text := more[op.OperationID]
		if text == "" {
			text = string(media.Example.(json.RawMessage))
		}
		text = strings.NewReplacer("SOON", b.in(time.Hour), "LATER", b.in(3*time.Hour), "2026-12-01T10:00:00Z", b.in(2*time.Hour)).Replace(text)
		path := strings.ReplaceAll(op.Path, "{id}", "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01")
		var whole any
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			t.Fatal(err)
		}
		complete(t, schemas, op.OperationID, media.Schema, whole)
		for _, place := range places(whole, nil) {
			body, err := json.Marshal(without(whole, place))
			if err != nil {
				t.Fatal(err)
			}
			allowed := allowsNull(schemas, media.Schema, place)
			r := b.send(op.Method, path, string(body))
			accepted := r.status != 422 && r.status != 400
			if nulls++; accepted != allowed {
				t.Errorf("%s: null at %v: the schema allows it: %t, the server: %d %s", op.OperationID, place, allowed, r.status, r.text)
			}
		}
	}
	if bodies < 7 || nulls < 50 {
		t.Errorf("%d nulls in %d kinds of requests", nulls, bodies)
	}
}

// allowsNull reports whether a schema allows null at a place: where it says so, and where it says nothing.
func allowsNull(schemas huma.Registry, s *huma.Schema, place []any) bool {
	for _, step := range place {
		if s.Ref != "" {
			s = schemas.SchemaFromRef(s.Ref)
		}
		if name, member := step.(string); !member {
			s = s.Items
		} else if s = s.Properties[name]; s == nil {
			return true // a member of the caller's own
		}
	}
	return s.Ref == "" && (s.Type == "" || s.Nullable)
}

// ofSomeLimits are members that are for other algorithms, or for limits about another subject.
var ofSomeLimits = map[string]bool{"burst": true, "precision": true, "aligned": true, "refill": true}

// complete demands that a body has every member that its schema names.
func complete(t *testing.T, schemas huma.Registry, name string, s *huma.Schema, v any) {
	t.Helper()
	if s.Ref != "" {
		s = schemas.SchemaFromRef(s.Ref)
	}
	switch v := v.(type) {
	case map[string]any:
		for member, schema := range s.Properties {
			if _, has := v[member]; !has && !ofSomeLimits[member] {
				t.Errorf("%s: the test has no %s", name, member)
			}
			complete(t, schemas, name, schema, v[member])
		}
	case []any:
		for _, one := range v {
			complete(t, schemas, name, s.Items, one)
		}
	}
}

// places lists where something stands in a JSON value, the whole included.
func places(v any, at []any) [][]any {
	all := [][]any{slices.Clone(at)}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, places(v[name], append(at, name))...)
		}
	case []any:
		for i := range v {
			all = append(all, places(v[i], append(at, i))...)
		}
	}
	return all
}

// without is a copy of a JSON value with null in one place.
func without(v any, at []any) any {
	if len(at) == 0 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		name := at[0].(string)
		c[name] = without(v[name], at[1:])
		return c
	case []any:
		c := slices.Clone(v)
		i := at[0].(int)
		c[i] = without(v[i], at[1:])
		return c
	}
	return v
}

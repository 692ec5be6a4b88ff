package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/rest"
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

// halves walks over the schemas of all requests, and over the schemas of all answers.
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
	return schema["type"] == "null" || many && slices.Contains(types, any("null")) || schema["nullable"] == true || slices.Contains(enum, any(nil))
}

// TestOpenAPI_Nulls: no schema of a request allows null for a part with a type, except for secrets, which null removes. Parts without
// a type accept anything; TestBody_NullMembers asks the server about both.
func TestOpenAPI_Nulls(t *testing.T) {
	visited := 0
	halves(t, served(t), func(place string, schema map[string]any) {
		if visited++; mayBeNull(schema) && schema["writeOnly"] != true {
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
			t.Errorf("%s of a request neither allows nor forbids further members", place)
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

// TestOpenAPI_Discriminators: several schemas have a common member that distinguishes them, and no two
// of them are for the same value. anyOf is for one schema, by its name, and null.
func TestOpenAPI_Discriminators(t *testing.T) {
	doc := served(t)
	found := 0
	walkDoc(t, doc, doc, "", map[string]bool{}, func(place string, schema map[string]any) {
		if either, has := schema["anyOf"].([]any); has {
			named, _ := either[0].(map[string]any)
			if len(either) != 2 || len(named) != 1 || named["$ref"] == nil || !reflect.DeepEqual(either[1], map[string]any{"type": "null"}) {
				t.Errorf("%s has anyOf %v", place, either)
			}
		}
		one, several := schema["oneOf"].([]any)
		if !several {
			return
		}
		found++
		discriminator, _ := schema["discriminator"].(map[string]any)
		name, _ := discriminator["propertyName"].(string)
		mapping, _ := discriminator["mapping"].(map[string]any)
		if name != "type" && name != "owner" || len(mapping) < len(one) {
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

// TestOpenAPI_Components: every problem is documented once, as a component that operations refer to, and no component is
// unused.
func TestOpenAPI_Components(t *testing.T) {
	doc := served(t)
	used := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			walkDoc(t, doc, op, "", used, func(string, map[string]any) {})
			for status, answer := range op.(map[string]any)["responses"].(map[string]any) {
				if content, _ := answer.(map[string]any)["content"].(map[string]any); content[rest.MediaProblem] != nil {
					t.Errorf("%s %s %s is no reference", method, path, status)
				}
			}
		}
	}
	for _, kind := range []string{"schemas", "headers", "responses", "parameters"} {
		for name := range doc["components"].(map[string]any)[kind].(map[string]any) {
			if !used["#/components/"+kind+"/"+name] {
				t.Errorf("no operation refers to %s of %s", name, kind)
			}
		}
	}
}

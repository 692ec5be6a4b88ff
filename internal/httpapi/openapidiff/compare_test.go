package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// A document with one schema, as an answer has it, and with components.
const page = `{"openapi": "3.1.0", "paths": {"/x": {"get": {"responses": {"200": {"content": {"application/json": {"schema": SCHEMA}}}}}}}, "components": {"schemas": {COMPONENTS}}}`

func document(t *testing.T, schema, components string) (doc map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(strings.NewReplacer("SCHEMA", schema, "COMPONENTS", components).Replace(page)), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestCompare: what a document means counts, and not where it says so.
func TestCompare(t *testing.T) {
	const a = `"A": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n", "s"]}`
	for _, row := range []struct {
		name, before, beforeComponents, after, afterComponents string
		want                                                   []string
	}{
		{"a reference is what it refers to", `{"$ref": "#/components/schemas/A"}`, a,
			`{"type": "object", "required": ["s", "n"], "properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}`, a, nil},
		{"null has two forms", `{"type": ["null", "object"], "description": "d", "required": ["n", "s"], "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}`, a,
			`{"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}], "description": "d"}`, a, nil},
		{"null is allowed no more", `{"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/A"}]}`, a, `{"$ref": "#/components/schemas/A"}`, a, []string{`/type: "object", before ["null","object"]`}},
		{"null does not fit an enum by its type", `{"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}`, a, `{"type": ["string", "null"], "enum": ["a"]}`, a,
			[]string{"/anyOf: gone", "/enum: new", "/type: new"}},
		{"a component is gone", `{}`, a, `{}`, "", []string{"/components/schemas/A: gone"}},
		{"a member is gone, another one has another type", `{"$ref": "#/components/schemas/A"}`, a,
			`{"$ref": "#/components/schemas/A"}`, `"A": {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n", "s"]}`,
			[]string{`/properties/n/type: "string", before "integer"`, "/properties/s: gone"}},
		{"a text beside a reference", `{"$ref": "#/components/schemas/A"}`, a, `{"$ref": "#/components/schemas/A", "description": "d"}`, a, []string{"/description: new"}},
		{"a schema that contains itself", `{"$ref": "#/components/schemas/T"}`, `"T": {"properties": {"sub": {"$ref": "#/components/schemas/T"}}}`,
			`{"$ref": "#/components/schemas/T"}`, `"T": {"properties": {"sub": {"$ref": "#/components/schemas/T"}}, "type": "object"}`, []string{"/type: new"}},
	} {
		got, err := compare(document(t, row.before, row.beforeComponents), document(t, row.after, row.afterComponents))
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "/paths//x/get/responses/200/content/application/json/schema")
		}
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, %v, want %q", row.name, got, err, row.want)
		}
	}
	if _, err := compare(document(t, `{"$ref": "#/components/schemas/B"}`, a), document(t, `{}`, "")); err == nil {
		t.Error("a reference leads nowhere")
	}
}

// TestCompare_Served: each change of a schema of the API's document is found, wherever it is used.
func TestCompare_Served(t *testing.T) {
	read := func() (doc map[string]any) {
		text, err := os.ReadFile("../openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		return doc
	}
	before, after := read(), read()
	if found, err := compare(before, after); err != nil || len(found) > 0 {
		t.Fatalf("%q, %v", found, err)
	}
	schemas := after["components"].(map[string]any)["schemas"].(map[string]any)
	for name, schema := range schemas {
		schema.(map[string]any)["x-changed-"+name] = true
	}
	found, err := compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(found, "\n")
	for name := range schemas {
		if !strings.Contains(all, "/x-changed-"+name+": new") {
			t.Errorf("a change of %s is not found", name)
		}
	}
}

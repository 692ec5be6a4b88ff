package rest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// TestValues_MatchSchema: each kind of value refuses what its schema refuses, and accepts what that accepts.
func TestValues_MatchSchema(t *testing.T) {
	type none = struct{}
	list := Array(1, 2, AnyText().Describe, func(_ *none, r *Reader, i int, name string, errs *FieldErrors) {
		if raw := r.Value(); raw[0] != '"' {
			errs.AddJSON(Item(name, i), "must be a string", raw)
		}
	})
	message := Table[none]{SchemaName: "Message", Open: true, Fields: []Field[none]{
		{Name: "title", value: AnyText()}, {Name: "body", value: AnyText()}, {Name: "data", value: Anything()},
	}}
	all := Table[none]{SchemaName: "Values", Fields: []Field[none]{
		{Name: "text", value: Text(func(*none, string) {}, 1, 3)},
		{Name: "word", required: true, value: OneOf(func(*none, string) {}, "a", "b").Or("a")},
		{Name: "boolean", value: Boolean(func(*none, bool) {})},
		{Name: "integer", required: true, value: Integer(func(*none, int) {}, 1, 5)},
		{Name: "span", value: Span(func(*none, time.Duration) {}, time.Second, time.Hour)},
		{Name: "moment", value: Moment(func(*none, time.Time) {})},
		{Name: "object", value: AnyObject(func(*none, []byte) {})},
		{Name: "message", value: AnyObject(func(*none, []byte) {}).Shaped(&message)},
		{Name: "list", value: list},
	}}
	schemas := huma.NewMapRegistry(schemaPrefix, schemaName)
	schema := all.Schema(&Spec{schemas: schemas})
	good := map[string]string{
		"text": `"abc"`, "word": `"b"`, "boolean": `true`, "integer": `5`, "span": `"1m30s"`, "moment": `"2026-12-01T09:00:00Z"`, "object": `{"a":1}`,
		"message": `{"title":"x","data":1,"more":2}`, "list": `["x","y"]`,
	}
	for name := range good {
		for _, v := range []string{
			"", good[name], `""`, `"abcd"`, `"ü"`, `"x"`, `0`, `1`, `6`, `-1.5`, `true`, `{}`, `{"title":1}`, `{"body":[]}`, `[]`, `[1]`, `["x",2]`, `["x","y","z"]`,
			`"2026-12-01T09:00:00"`, `"90s"`, `"90"`, `"0.01d"`, `"0.01d5s"`, `"5s0.01d"`, `"0.01d0.01d"`,
		} {
			changed := maps.Clone(good)
			if changed[name] = v; v == "" {
				delete(changed, name)
			}
			var members []string
			for name, v := range changed {
				members = append(members, `"`+name+`":`+v)
			}
			object := "{" + strings.Join(members, ",") + "}"
			var parsed any
			if err := json.Unmarshal([]byte(object), &parsed); err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, err := range validated(schemas, schema, parsed) {
				want = append(want, whereOf(err.(*huma.ErrorDetail)))
			}
			var errs FieldErrors
			all.Read(newReader([]byte(object)), &struct{}{}, &errs)
			for _, e := range errs.List {
				got = append(got, e.Field)
			}
			if want = slices.Compact(want); !slices.Equal(got, want) {
				t.Errorf("%s: the table refuses %q, the schema %q", object, got, want)
			}
		}
	}
}

// whereOf is the field that the schema refuses. Of a member that is missing it names the object; the table names the
// member.
func whereOf(e *huma.ErrorDetail) string {
	if name, ok := strings.CutPrefix(e.Message, "expected required property "); ok {
		name, _, _ = strings.Cut(name, " ")
		return strings.TrimPrefix(Under(e.Location, name), ".")
	}
	return e.Location
}

// validated returns what a schema refuses of a value.
func validated(schemas huma.Registry, s *huma.Schema, v any) []error {
	res := &huma.ValidateResult{}
	huma.Validate(schemas, s, huma.NewPathBuffer([]byte{}, 0), huma.ModeWriteToServer, v, res)
	return res.Errors
}

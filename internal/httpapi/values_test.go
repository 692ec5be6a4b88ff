package httpapi

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
	list := array(1, 2, anyText().describe, func(_ *none, r *reader, i int, name string, errs *fieldErrors) {
		if raw := r.value(); raw[0] != '"' {
			errs.addJSON(item(name, i), "must be a string", raw)
		}
	})
	message := table[none]{schemaName: "Message", open: true, fields: []field[none]{
		{name: "title", value: anyText()}, {name: "body", value: anyText()}, {name: "data", value: anything()},
	}}
	all := table[none]{schemaName: "Values", fields: []field[none]{
		{name: "text", value: text(func(*none, string) {}, 1, 3)},
		{name: "word", required: true, value: oneOf(func(*none, string) {}, "a", "b").or("a")},
		{name: "boolean", value: boolean(func(*none, bool) {})},
		{name: "integer", required: true, value: integer(func(*none, int) {}, 1, 5)},
		{name: "span", value: span(func(*none, time.Duration) {}, time.Second, time.Hour)},
		{name: "moment", value: moment(func(*none, time.Time) {})},
		{name: "object", value: anyObject(func(*none, []byte) {})},
		{name: "message", value: anyObject(func(*none, []byte) {}).shaped(&message)},
		{name: "list", value: list},
	}}
	schemas := huma.NewMapRegistry(schemaPrefix, schemaName)
	schema := all.schema(&spec{schemas: schemas})
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
			var errs fieldErrors
			all.read(newReader([]byte(object)), &struct{}{}, &errs)
			for _, e := range errs.list {
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
		return strings.TrimPrefix(under(e.Location, name), ".")
	}
	return e.Location
}

// validated returns what a schema refuses of a value.
func validated(schemas huma.Registry, s *huma.Schema, v any) []error {
	res := &huma.ValidateResult{}
	huma.Validate(schemas, s, huma.NewPathBuffer([]byte{}, 0), huma.ModeWriteToServer, v, res)
	return res.Errors
}

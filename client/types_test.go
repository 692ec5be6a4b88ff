package client_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTypes_Complete: types.go and problems.go have a type for each schema of the API's document, with its members.
func TestTypes_Complete(t *testing.T) {
	types, renamed := fieldsOf(t, "types.go", "problems.go"), renames(t)
	for _, problem := range []struct{ schema, name string }{
		{"InvalidProblem", "Invalid"}, {"QuotaProblem", "QuotaExceeded"}, {"OptOutProblem", "OptedOut"}, {"CapProblem", "CapExceeded"},
		{"PushProblem", "PushState"}, {"GoneProblem", "PushGone"}, {"BatchProblem", "BatchRefused"}, {"CampaignProblem", "CampaignState"},
	} {
		renamed[problem.schema] = problem.name
	}
	text, err := os.ReadFile("../internal/httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for schema, s := range document.Components.Schemas {
		name := schema
		if other, ok := renamed[schema]; ok {
			name = other
		}
		got, known := types[name]
		if !known {
			t.Errorf("there is no %s for the schema %s: go generate ./client", name, schema)
			continue
		}
		if want := slices.Sorted(maps.Keys(s.Properties)); got != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, and the schema %s %v: go generate ./client", name, got, schema, want)
		}
	}
}

// fieldsOf reads the types of files: the members of each struct, those of embedded structs with it; nil for another type.
func fieldsOf(t *testing.T, files ...string) map[string][]string {
	t.Helper()
	specs := map[string]ast.Expr{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					specs[s.(*ast.TypeSpec).Name.Name] = s.(*ast.TypeSpec).Type
				}
			}
		}
	}
	var members func(ast.Expr) []string
	members = func(e ast.Expr) []string {
		s, ok := e.(*ast.StructType)
		if !ok {
			return nil
		}
		all := []string{}
		for _, f := range s.Fields.List {
			if f.Tag == nil {
				all = append(all, members(specs[f.Type.(*ast.Ident).Name])...)
			} else if name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ","); name != "-" {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return all
	}
	found := map[string][]string{}
	for name, e := range specs {
		found[name] = members(e)
	}
	return found
}

var rename = regexp.MustCompile(`schemas\.(\w+)", update: \{x-go-name: (\w+)\}`)

// renames are the names that overlay.yaml gives to schemas.
func renames(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("overlay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range rename.FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = m[2]
	}
	return all
}

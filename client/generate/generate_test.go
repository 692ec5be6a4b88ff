package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const openapi, overlay = "../../internal/httpapi/openapi.json", "../overlay.yaml"

// TestMethods_Current: methods.go is what the API's document yields.
func TestMethods_Current(t *testing.T) {
	t.Parallel()
	want, err := generate(openapi, overlay)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../methods.go"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("methods.go is not what the document yields: make generate (%v)", err)
	}
}

// TestMethods_Complete: each operation of the document has its method, generated or written by hand.
func TestMethods_Complete(t *testing.T) {
	t.Parallel()
	methods := methodsOf(t, "../methods.go", "../byhand.go")
	for path, operations := range documentOf(t).Paths {
		for verb, o := range operations {
			if method := o.Tags[0] + "API." + o.name(); !methods[method] {
				t.Errorf("%s %s has no method %s", verb, path, method)
			}
		}
	}
}

func documentOf(t *testing.T) document {
	t.Helper()
	d, err := read(openapi, overlay)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// declarations of files of the package.
func declarations(t *testing.T, files ...string) (all []ast.Decl) {
	t.Helper()
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file.Decls...)
	}
	return all
}

// methodsOf are the methods in files, as Type.Method.
func methodsOf(t *testing.T, files ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, d := range declarations(t, files...) {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
			if of, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				found[of.Name+"."+f.Name.Name] = true
			}
		}
	}
	return found
}

// TestTypes_Complete: types.go and problems.go have a type for each schema of the API's document, with its members.
func TestTypes_Complete(t *testing.T) {
	t.Parallel()
	types, d := fieldsOf(t, "../types.go", "../problems.go", "../byhand.go"), documentOf(t)
	for name, s := range d.Components.Schemas {
		typeName := d.goType(schema{Ref: schemas + name})
		if of, ok := typedByHand[name]; ok {
			typeName = of
		}
		if of, ok := refusals[name]; ok {
			typeName = of[0]
		}
		got, known := types[typeName]
		if !known {
			t.Errorf("there is no %s for the schema %s: make generate", typeName, name)
			continue
		}
		if want := slices.Sorted(maps.Keys(s.Properties)); got != nil && !slices.Equal(got, want) {
			t.Errorf("%s has %v, and the schema %s %v: make generate", typeName, got, name, want)
		}
	}
}

// fieldsOf reads the types of files: the members of each struct, those of embedded structs with it; nil for another type.
func fieldsOf(t *testing.T, files ...string) map[string][]string {
	t.Helper()
	specs := map[string]ast.Expr{}
	for _, d := range declarations(t, files...) {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				specs[s.(*ast.TypeSpec).Name.Name] = s.(*ast.TypeSpec).Type
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

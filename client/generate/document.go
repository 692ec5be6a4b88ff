package main

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// document contains the parts of the API's document that the methods need.
type document struct {
	Tags       []tag
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }

	renamed map[string]string // schemas whose types have another name
}

type tag struct{ Name, Description string }

type operation struct {
	ID          string `json:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody struct{ Content content }
	Responses   map[string]struct{ Content content }

	Verb, Path string
}

type parameter struct {
	Name, In, Description string
	Schema                schema
}

// content maps media types to schemas.
type content map[string]struct{ Schema schema }

type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // a name, or several
	Format     string
	Maximum    int
	Properties map[string]schema
	Items      *schema
	OneOf      []schema
}

const schemas = "#/components/schemas/"

// name is the name of a schema of the document.
func (s schema) name() string { return strings.TrimPrefix(s.Ref, schemas) }

var rename = regexp.MustCompile(`schemas\.(\w+)", update: \{x-go-name: (\w+)\}`)

// read reads a document, and the names of types in an overlay.
func read(path, overlay string) (d document, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return d, err
	}
	if text, err = json.Marshal(inline(whole, whole)); err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, err
	}
	names, err := os.ReadFile(overlay)
	d.renamed = map[string]string{}
	for _, m := range rename.FindAllStringSubmatch(string(names), -1) {
		d.renamed[m[1]] = m[2]
	}
	return d, err
}

// inline replaces each reference by its target, except references to schemas.
func inline(node any, whole map[string]any) any {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok && !strings.HasPrefix(ref, schemas) {
			var target any = whole
			for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				target = target.(map[string]any)[part]
			}
			return inline(target, whole)
		}
		for name, value := range node {
			node[name] = inline(value, whole)
		}
	case []any:
		for i, value := range node {
			node[i] = inline(value, whole)
		}
	}
	return node
}

// operations lists the operations of a tag by their paths.
func (d document) operations(tag string) (all []operation) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, verb := range slices.Sorted(maps.Keys(d.Paths[path])) {
			if o := d.Paths[path][verb]; slices.Contains(o.Tags, tag) {
				o.Verb, o.Path = strings.ToUpper(verb), path
				all = append(all, o)
			}
		}
	}
	return all
}

// goType returns the type of the package for a schema.
func (d document) goType(s schema) string {
	if other, ok := d.renamed[s.name()]; ok {
		return other
	}
	return s.name()
}

// has reports whether an operation has a parameter.
func (o operation) has(name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.Name == name })
}

// answers returns the schemas of successful answers in JSON, by their status.
func (o operation) answers() (all []schema) {
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if media, ok := o.Responses[status].Content["application/json"]; ok && status[0] == '2' {
			all = append(all, media.Schema)
		}
	}
	return all
}

// refused returns the types of the errors that belong to this operation.
func (o operation) refused() (all []string) {
	for status, answer := range o.Responses {
		for _, media := range answer.Content {
			for _, s := range append(media.Schema.OneOf, media.Schema) {
				if types := refusals[s.name()]; status[0] == '4' && s.name() != "InvalidProblem" {
					all = append(all, types...)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

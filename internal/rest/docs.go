package rest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/assets"
)

//go:embed docs.html
var docsTemplate string

// docsView is the content of the reading page.
type docsView struct {
	Title  string
	Try    bool // there is a page to try requests
	About  []string
	Access string
	Groups []docsGroup
	Kinds  []Kind
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Scope string
	Description                      []string
	Params, Fields                   []docsField
	Request                          string
	Answers                          []docsAnswer
}

// docsField is a parameter, or a member of a body.
type docsField struct {
	Name, In, Type, Description string
	Required                    bool
}

type docsAnswer struct {
	Status, Description string
	Examples            []docsExample
}

// Brief returns the text beside the status of a folded answer: its kinds of problems, or else its description.
func (a docsAnswer) Brief() string {
	var names []string
	for _, e := range a.Examples {
		if e.Name != "" {
			names = append(names, e.Name)
		}
	}
	if names == nil {
		return a.Description
	}
	return strings.Join(names, ", ")
}

type docsExample struct{ Name, Text string }

// DocsPage draws the OpenAPI document with all operations. The page loads nothing from elsewhere.
func (a *API) DocsPage(kinds []Kind, try bool) *assets.Page {
	t := template.Must(template.New("docs").Parse(docsTemplate))
	var page bytes.Buffer
	if err := t.Execute(&page, a.docs(kinds, try)); err != nil {
		panic(fmt.Errorf("draw /docs: %w", err)) // a test requests it
	}
	return assets.NewPage(page.Bytes(), "Content-Type", "text/html; charset=utf-8", "Content-Security-Policy", styleOnly(page.Bytes()))
}

func (a *API) docs(kinds []Kind, try bool) docsView {
	doc := a.huma.OpenAPI()
	v := docsView{
		Title: doc.Info.Title, Try: try, About: paragraphs(doc.Info.Description), Kinds: kinds,
		Access: withoutMarks(doc.Components.SecuritySchemes[bearerScheme].Description),
	}
	for _, tag := range doc.Tags {
		g := docsGroup{Name: tag.Name, Description: tag.Description}
		for _, op := range a.operations {
			if slices.Contains(op.Tags, tag.Name) {
				g.Operations = append(g.Operations, docsOf(op, doc))
			}
		}
		v.Groups = append(v.Groups, g)
	}
	return v
}

// withoutMarks removes the backquotes of Markdown.
func withoutMarks(text string) string { return strings.ReplaceAll(text, "`", "") }

func paragraphs(text string) []string { return strings.Split(text, "\n\n") }

func docsOf(op *huma.Operation, doc *huma.OpenAPI) docsOperation {
	schemas := doc.Components.Schemas
	v := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: paragraphs(op.Description)}
	if len(op.Security) > 0 {
		v.Scope = op.Security[0][bearerScheme][0]
	}
	for _, p := range op.Parameters {
		p = resolvedParam(doc, p)
		v.Params = append(v.Params, docsField{Name: p.Name, In: p.In, Type: typeOf(p.Schema, schemas), Description: p.Description, Required: p.Required})
	}
	if op.RequestBody != nil {
		if media := op.RequestBody.Content["application/json"]; media != nil {
			v.Fields, v.Request = docsFields(media.Schema, schemas), indented(media.Example)
		} else {
			v.Request = textsOf(op.RequestBody)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		v.Answers = append(v.Answers, docsAnswerOf(status, resolved(doc, op.Responses[status])))
	}
	return v
}

// textsOf returns the examples of a body that is not JSON.
func textsOf(body *huma.RequestBody) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(body.Content)) {
		if raw, ok := body.Content[name].Example.(json.RawMessage); ok {
			text, _ := Unquote(raw)
			texts = append(texts, name+"\n"+text)
		}
	}
	return strings.Join(texts, "\n")
}

func docsAnswerOf(status string, r *huma.Response) docsAnswer {
	v := docsAnswer{Status: status, Description: withoutMarks(r.Description)}
	for _, media := range r.Content {
		if media.Example != nil {
			v.Examples = append(v.Examples, docsExample{Text: indented(media.Example)})
		}
		for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
			v.Examples = append(v.Examples, docsExample{name, indented(media.Examples[name].Value)})
		}
	}
	return v
}

// docsFields lists the members of a body, required ones first.
func docsFields(s *huma.Schema, schemas huma.Registry) []docsField {
	s = resolve(s, schemas)
	var fields []docsField
	for _, required := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if p := s.Properties[name]; slices.Contains(s.Required, name) == required {
				fields = append(fields, docsField{Name: name, Type: typeOf(p, schemas), Description: p.Description, Required: required})
			}
		}
	}
	return fields
}

func resolve(s *huma.Schema, schemas huma.Registry) *huma.Schema {
	if s.Ref != "" {
		return schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// typeOf describes the type of a value in a few words.
func typeOf(s *huma.Schema, schemas huma.Registry) string {
	s = resolve(s, schemas)
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, " | ")
	case s.Type == huma.TypeArray:
		return "array of " + typeOf(s.Items, schemas) + "s"
	case s.Format == "date-time":
		return "time"
	case s.Format != "":
		return s.Format
	}
	return s.Type
}

func indented(example any) string {
	text, err := json.MarshalIndent(example, "", "  ")
	if err != nil {
		panic(err) // examples were marshaled before
	}
	return string(text)
}

package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// method is one method of the package.
type method struct {
	operation
	Group, Name string
	About       string
	Options     options
	Body        string // its type; empty: none
	Answer      string // its type, or the type of a list's items; empty: none
	Page, Items string // of a list: the type of a page, and the field with its items
	PageSize    int
	Repeat      string // an expression; empty: false
	Trial       string // the parameter of a dry run

	Key, AsOf, Upload, Stream bool
}

// Methods returns the methods of a group. An operation has several if it can be conditional, or a dry run.
func (d document) Methods(t tag) (all []method) {
	for _, o := range d.operations(t.Name) {
		if byHand[o.ID] != "" {
			continue
		}
		live := d.live(o)
		all = append(all, live)
		if o.has("If-Match") && !live.Options.IfVersion {
			m := live
			m.Name, m.AsOf = live.Name+"AsOf", true
			m.About = fmt.Sprintf("%s is [%sAPI.%s] for the state of a time, an updated_at: the API refuses it with status 412 (stale-version) after another change.", m.Name, m.Group, live.Name)
			all = append(all, m)
		}
		for _, p := range o.Parameters {
			if verb, ok := trials[p.Name]; ok {
				m := live
				m.Name, m.Trial, m.Key, m.Options, m.Repeat = verb+live.Name, p.Name, false, options{}, "true"
				m.About = fmt.Sprintf("%s is [%sAPI.%s] with %s: %s", m.Name, m.Group, live.Name, p.Name, lower(p.Description))
				m.Answer = d.goType(o.answers()[0])
				all = append(all, m)
			}
		}
	}
	return all
}

// live returns the method that carries an operation out.
func (d document) live(o operation) method {
	m := method{operation: o, Group: o.Tags[0], Name: o.name(), Key: o.has("Idempotency-Key")}
	_, m.Stream = o.Responses["200"].Content["application/x-ndjson"]
	json, typed := o.RequestBody.Content["application/json"]
	m.Body, m.Upload = d.goType(json.Schema), len(o.RequestBody.Content) > 0 && !typed
	var versioned bool
	if answers := o.answers(); len(answers) > 0 {
		answer := answers[len(answers)-1]
		m.Answer = d.goType(answer)
		_, versioned = d.Components.Schemas[answer.name()].Properties["version"]
		if o.has("page_token") {
			d.list(&m, d.Components.Schemas[answer.name()].Properties)
		}
	}
	m.Options = o.options(m.Answer)
	m.Options.IfVersion = versioned && o.has("If-Match")
	_, dry := d.Components.Schemas[json.Schema.name()].Properties["dry_run"]
	if safe, known := again[o.ID]; safe || !known && o.Verb != "POST" {
		m.Repeat = "true"
	} else if dry {
		m.Repeat = "body.DryRun"
	}
	m.About = strings.ReplaceAll(fmt.Sprintf("%s is %s %s: %s.\n\n%s", m.Name, o.Verb, o.Path, lower(o.Summary), o.Description), "?.", "?")
	if types := o.refused(); len(types) > 0 {
		m.About += "\n\nRefusals of its own: [" + strings.Join(types, "], [") + "]."
	}
	return m
}

// list makes a method one of a list, whose pages have these members. The last part of the path is the member with the items;
// otherwise it is the only array.
func (d document) list(m *method, members map[string]schema) {
	name := strings.ReplaceAll(path.Base(m.operation.Path), "-", "_")
	for other, member := range members {
		if members[name].Items == nil && member.Items != nil {
			name = other
		}
	}
	m.Page, m.Answer, m.Items = m.Answer, d.goType(*members[name].Items), camel(name)
	for _, p := range m.Parameters {
		if p.Name == "page_size" && !shortPages[m.ID] {
			m.PageSize = p.Schema.Maximum
		}
	}
}

// name returns the name of the live method: the id without the words of its group.
func (o operation) name() (name string) {
	group := strings.ToLower(o.Tags[0])
	for word := range strings.SplitSeq(o.ID, "-") {
		if word != group && word+"s" != group && word+"es" != group {
			name += camel(word)
		}
	}
	return name
}

// options are the parameters of a query, in the order of the document, and the version that a change is for.
type options struct {
	Name      string
	Fields    []field
	IfVersion bool
}

type field struct{ Key, Name, Type, Value, About string }

var verbs = regexp.MustCompile(`^(list|get|put|delete)-`)

// options returns the options of an operation whose answer, or items, have this type.
func (o operation) options(answer string) options {
	found := options{Name: camel(verbs.ReplaceAllString(o.ID, "")) + "Options"}
	for _, p := range o.Parameters {
		if _, trial := trials[p.Name]; p.In != "query" || trial || strings.HasPrefix(p.Name, "page_") {
			continue
		}
		f := field{Key: p.Name, Name: camel(p.Name), Type: "string", Value: "o." + camel(p.Name), About: p.Description}
		switch {
		case p.Schema.Format == "date":
			f.Type, f.Value = "time.Time", "dayOf("+f.Value+")"
		case p.Schema.Format == "date-time":
			f.Type = "time.Time"
		case p.Schema.Type == "integer":
			f.Type = "int"
		case p.Schema.Type == "boolean":
			f.Type = "bool"
		case p.Name == "status":
			f.Type = answer + "Status"
		}
		found.Fields = append(found.Fields, f)
	}
	return found
}

// Options returns the options of a group. Operations that put and delete one thing share theirs.
func (d document) Options(t tag) (all []options) {
	for _, m := range d.Methods(t) {
		known := slices.ContainsFunc(all, func(o options) bool { return o.Name == m.Options.Name })
		if o := m.Options; !known && (len(o.Fields) > 0 || o.IfVersion) {
			all = append(all, o)
		}
	}
	return all
}

// camel joins the words of a name.
func camel(name string) (joined string) {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
		joined += strings.ToUpper(word[:1]) + word[1:]
	}
	return joined
}

// lower makes a sentence a part of another one.
func lower(sentence string) string { return strings.ToLower(sentence[:1]) + sentence[1:] }

// comment wraps a text into the lines of a comment.
func comment(text string) string {
	var all strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		line := "//"
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+len(word) > 119 {
				all.WriteString(line + "\n")
				line = "//"
			}
			line += " " + word
		}
		all.WriteString(line + "\n//\n")
	}
	return strings.TrimSuffix(all.String(), "//\n")
}

package console

import (
	"cmp"
	"html"
	"html/template"
	"slices"
	"strings"
)

// shownFault is what is wrong with a form, as the top of the page lists it.
type shownFault struct {
	Name string // of the field, as people read it
	At   string // the id of the field; empty: the page has none for it
	Text string
}

// named is a field of the page by the id and the words under which the top of the page lists its fault.
type named struct{ id, words string }

// drawing is what the main part of a page notes of itself while its template is executed.
type drawing struct {
	fields map[string]named // by the names of their faults
	faults []string         // names, in the order in which the page shows them
}

// placeFaults divides the faults of the form into those that the page shows at their fields, in the order of the page, and the others,
// which stand above. No fault is lost, whatever the API finds.
func (p *page) placeFaults() {
	p.AtFields, p.Elsewhere = nil, nil
	for _, name := range p.drawing.faults {
		field := p.drawing.fields[name]
		p.AtFields = append(p.AtFields, shownFault{cmp.Or(field.words, fieldWords(name)), cmp.Or(field.id, "fault-"+name), p.Faults[name]})
	}
	for name, text := range p.Faults {
		if !slices.Contains(p.drawing.faults, name) {
			p.Elsewhere = append(p.Elsewhere, shownFault{Name: fieldWords(name), Text: text})
		}
	}
	slices.SortFunc(p.Elsewhere, func(a, b shownFault) int { return cmp.Compare(a.Name, b.Name) })
}

// Shown is Fault where the page shows it.
func (p *page) Shown(name string) string {
	text := p.Faults[name]
	if text != "" && !slices.Contains(p.drawing.faults, name) {
		p.drawing.faults = append(p.drawing.faults, name)
	}
	return text
}

// name notes what people read of a field: the first field of a name counts. Without a name, the field has no faults.
func (p *page) name(name, id, words string) {
	if _, known := p.drawing.fields[name]; known || name == "" {
		return
	}
	if p.drawing.fields == nil {
		p.drawing.fields = map[string]named{}
	}
	p.drawing.fields[name] = named{id, words}
}

// Label is the label of a field.
func (p *page) Label(name, id, words string) template.HTML {
	p.name(name, id, words)
	return template.HTML(`<label for="` + html.EscapeString(id) + `">` + html.EscapeString(words) + `</label>`)
}

// Legend is the legend of a group of fields.
func (p *page) Legend(name, id, words string) template.HTML {
	p.name(name, id, words)
	return template.HTML(`<legend>` + html.EscapeString(words) + `</legend>`)
}

// AriaLabel is the attribute that names a field without a label.
func (p *page) AriaLabel(name, id, words string) template.HTMLAttr {
	p.name(name, id, words)
	return template.HTMLAttr(` aria-label="` + html.EscapeString(words) + `"`)
}

// fieldWords makes words of the name of a field.
func fieldWords(name string) string {
	return strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ", ".", " ", "[", " ", "]", " ").Replace(name))
}

// Marks are the attributes of a field that is not accepted as it is filled in: they lead to what is wrong with it.
func (p *page) Marks(name string) template.HTMLAttr {
	if p.Faults[name] == "" {
		return ""
	}
	return template.HTMLAttr(` aria-invalid="true" aria-describedby="fault-` + html.EscapeString(name) + `"`)
}

// GroupMarks are Marks of a group of fields.
func (p *page) GroupMarks(name string) template.HTMLAttr {
	if p.Faults[name] == "" {
		return ""
	}
	return template.HTMLAttr(` tabindex="-1" aria-describedby="fault-` + html.EscapeString(name) + `"`)
}

// Reading reports whether the form only looks something up.
func (p *page) Reading() bool { return p.r.Method == "GET" }

package frame

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
func (f *Form) placeFaults() {
	f.AtFields, f.Elsewhere = nil, nil
	for _, name := range f.drawing.faults {
		field := f.drawing.fields[name]
		f.AtFields = append(f.AtFields, shownFault{cmp.Or(field.words, fieldWords(name)), cmp.Or(field.id, "fault-"+name), f.Faults[name]})
	}
	for name, text := range f.Faults {
		if !slices.Contains(f.drawing.faults, name) {
			f.Elsewhere = append(f.Elsewhere, shownFault{Name: fieldWords(name), Text: text})
		}
	}
	slices.SortFunc(f.Elsewhere, func(a, b shownFault) int { return cmp.Compare(a.Name, b.Name) })
}

// Shown is Fault where the page shows it.
func (f *Form) Shown(name string) string {
	text := f.Faults[name]
	if text != "" && !slices.Contains(f.drawing.faults, name) {
		f.drawing.faults = append(f.drawing.faults, name)
	}
	return text
}

// name notes what people read of a field: the first field of a name counts. Without a name, the field has no faults.
func (f *Form) name(name, id, words string) {
	if _, known := f.drawing.fields[name]; known || name == "" {
		return
	}
	if f.drawing.fields == nil {
		f.drawing.fields = map[string]named{}
	}
	f.drawing.fields[name] = named{id, words}
}

// Label is the label of a field.
func (f *Form) Label(name, id, words string) template.HTML {
	f.name(name, id, words)
	return template.HTML(`<label for="` + html.EscapeString(id) + `">` + html.EscapeString(words) + `</label>`)
}

// Legend is the legend of a group of fields.
func (f *Form) Legend(name, id, words string) template.HTML {
	f.name(name, id, words)
	return template.HTML(`<legend>` + html.EscapeString(words) + `</legend>`)
}

// AriaLabel is the attribute that names a field without a label.
func (f *Form) AriaLabel(name, id, words string) template.HTMLAttr {
	f.name(name, id, words)
	return template.HTMLAttr(` aria-label="` + html.EscapeString(words) + `"`)
}

// fieldWords makes words of the name of a field.
func fieldWords(name string) string {
	return strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ", ".", " ", "[", " ", "]", " ").Replace(name))
}

// Marks are the attributes of a field that is not accepted as it is filled in: they lead to what is wrong with it.
func (f *Form) Marks(name string) template.HTMLAttr {
	if f.Faults[name] == "" {
		return ""
	}
	return template.HTMLAttr(` aria-invalid="true" aria-describedby="fault-` + html.EscapeString(name) + `"`)
}

// GroupMarks are Marks of a group of fields.
func (f *Form) GroupMarks(name string) template.HTMLAttr {
	if f.Faults[name] == "" {
		return ""
	}
	return template.HTMLAttr(` tabindex="-1" aria-describedby="fault-` + html.EscapeString(name) + `"`)
}

// Reading reports whether the form only looks something up.
func (f *Form) Reading() bool { return f.Request.Method == "GET" }

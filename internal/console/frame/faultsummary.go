package frame

import (
	"cmp"
	"html"
	"html/template"
	"slices"
	"strings"
)

// placeFaults divides the faults of the form into those that the page shows at their fields, in page order, and the others, which the
// summary shows. So every fault is shown, whatever the API finds.
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

// Shown returns the fault of a field and records that the page shows it.
func (f *Form) Shown(name string) string {
	text := f.Faults[name]
	if text != "" && !slices.Contains(f.drawing.faults, name) {
		f.drawing.faults = append(f.drawing.faults, name)
	}
	return text
}

// name records the label of a field. The first field with a name counts. A field without a name has no faults.
func (f *Form) name(name, id, words string) {
	if _, known := f.drawing.fields[name]; known || name == "" {
		return
	}
	if f.drawing.fields == nil {
		f.drawing.fields = map[string]named{}
	}
	f.drawing.fields[name] = named{id, words}
}

// Label returns the label of a field.
func (f *Form) Label(name, id, words string) template.HTML {
	f.name(name, id, words)
	return template.HTML(`<label for="` + html.EscapeString(id) + `">` + html.EscapeString(words) + `</label>`)
}

// Legend returns the legend of a group of fields.
func (f *Form) Legend(name, id, words string) template.HTML {
	f.name(name, id, words)
	return template.HTML(`<legend>` + html.EscapeString(words) + `</legend>`)
}

// AriaLabel returns the attribute that names a field without a label.
func (f *Form) AriaLabel(name, id, words string) template.HTMLAttr {
	f.name(name, id, words)
	return template.HTMLAttr(` aria-label="` + html.EscapeString(words) + `"`)
}

// fieldWords turns the name of a field into words.
func fieldWords(name string) string {
	return strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ", ".", " ", "[", " ", "]", " ").Replace(name))
}

// Marks returns the attributes that link an invalid field to its fault.
func (f *Form) Marks(name string) template.HTMLAttr {
	if f.Faults[name] == "" {
		return ""
	}
	return template.HTMLAttr(` aria-invalid="true" aria-describedby="fault-` + html.EscapeString(name) + `"`)
}

// GroupMarks returns Marks for a group of fields.
func (f *Form) GroupMarks(name string) template.HTMLAttr {
	if f.Faults[name] == "" {
		return ""
	}
	return template.HTMLAttr(` tabindex="-1" aria-describedby="fault-` + html.EscapeString(name) + `"`)
}

// Reading reports whether the form is a GET request, which changes nothing.
func (f *Form) Reading() bool { return f.Request.Method == "GET" }

package console

import (
	"cmp"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// shownFault is what is wrong with a form, as the top of the page tells it.
type shownFault struct {
	Name string // of the field, as people read it
	At   string // the id of the field; empty: the page has none for it
	Text string

	place int
}

// placeFaults parts the faults of the form into those that the page shows at their fields, in the order of the page, and the others,
// which are told above. What a page shows is seen in its text: so no fault is lost, whatever the API finds.
func (p *page) placeFaults(main string) {
	p.AtFields, p.Elsewhere = nil, nil
	for name, text := range p.Faults {
		f := shownFault{Name: fieldWords(name), Text: text, place: strings.Index(main, `id="fault-`+html.EscapeString(name)+`"`)}
		if f.place < 0 {
			p.Elsewhere = append(p.Elsewhere, f)
			continue
		}
		f.At = "fault-" + name
		tag := regexp.MustCompile(`<[a-z]+ id="([^"]+)"[^>]* aria-describedby="fault-` + regexp.QuoteMeta(html.EscapeString(name)) + `[" ][^>]*>(<legend>.*?</legend>)?`).FindStringSubmatch(main)
		if tag != nil {
			f.At, f.Name = html.UnescapeString(tag[1]), cmp.Or(labelOf(main, tag), f.Name)
		}
		p.AtFields = append(p.AtFields, f)
	}
	slices.SortFunc(p.AtFields, func(a, b shownFault) int { return a.place - b.place })
	slices.SortFunc(p.Elsewhere, func(a, b shownFault) int { return cmp.Compare(a.Name, b.Name) })
}

var (
	anyTag    = regexp.MustCompile(`<[^>]*>`)
	ariaLabel = regexp.MustCompile(` aria-label="([^"]*)"`)
)

// labelOf is how a page calls a field: by its label, its legend, or what is told to those who do not see it.
func labelOf(main string, tag []string) string {
	text := tag[2]
	if label := regexp.MustCompile(`<label for="` + regexp.QuoteMeta(tag[1]) + `">(.*?)</label>`).FindStringSubmatch(main); label != nil {
		text = label[1]
	} else if label := ariaLabel.FindStringSubmatch(tag[0]); label != nil {
		text = label[1]
	}
	return strings.TrimSpace(html.UnescapeString(anyTag.ReplaceAllString(text, "")))
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

package frame

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/assets"
)

//go:embed templates
var templateFiles embed.FS

// NewScreens parses the templates of sections. It panics if one is not valid. Each screen has the layout, the parts, and at least a template
// main of its own.
func NewScreens(files *assets.Files, sections []Section) *Screens {
	s := &Screens{sections: sections, templates: map[string]*template.Template{}, files: files}
	base := template.Must(template.New("").Funcs(functions).Funcs(template.FuncMap{"asset": files.Path}).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	s.parse(base, templateFiles)
	for _, one := range sections {
		own := template.Must(base.Clone()).Funcs(one.Functions)
		if parts, err := fs.Glob(one.Templates, "templates/parts.html"); err == nil && len(parts) == 1 {
			template.Must(own.ParseFS(one.Templates, "templates/parts.html"))
		}
		s.parse(own, one.Templates)
	}
	return s
}

// parse adds the screens of a folder.
func (s *Screens) parse(base *template.Template, from fs.FS) {
	names, err := fs.Glob(from, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		s.templates[name] = template.Must(template.Must(base.Clone()).ParseFS(from, file))
	}
}

// draw executes a template of a screen.
func (s *Screens) draw(screen, part string, view any) ([]byte, error) {
	t, ok := s.templates[screen]
	if !ok {
		return nil, fmt.Errorf("there is no screen %q", screen)
	}
	var text bytes.Buffer
	err := t.ExecuteTemplate(&text, part, view)
	return text.Bytes(), err
}

// functions lists the template functions of all sections. Functions that need a page are methods of [Page].
var functions = template.FuncMap{
	"number":       func(n any) string { return Number(n) },
	"percent":      Percent,
	"span":         func(d time.Duration) string { return Span(d) },
	"spoken":       SpanWords,
	"words":        func(code string) string { return strings.ReplaceAll(strings.ReplaceAll(code, "_", " "), "-", " ") },
	"pathpart":     PathPart,
	"segments":     Segments,
	"segmentwords": SegmentWords,
	"bodywords":    BodyWords,
	"campaignname": CampaignName,
	"said":         Words,
	"pausewords":   PauseWords,
	"heldwords":    HeldWords,
	"dict":         dict,
	"joined":       func(all []string) string { return strings.Join(all, ", ") },
	"perline":      func(all []string) string { return strings.Join(all, "\n") },
	"strings":      func(all ...string) []string { return all },
	"second":       func(t time.Time) time.Time { return t.Truncate(time.Second) },
	"len64":        func(all []client.LineFault) int64 { return int64(len(all)) },
}

// dict makes a map of names and values, to pass several values to a template.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict has %d arguments: it takes names and values", len(pairs))
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}

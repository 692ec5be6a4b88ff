package frame

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/duration"
)

//go:embed templates
var templateFiles embed.FS

// Room is a part of the console: its pages, with their templates and the functions that these call.
type Room struct {
	Templates fs.FS // with templates/*.html; templates/parts.html is shared by the screens of the room
	Functions template.FuncMap
	Routes    func(Routes)
}

// Screens holds the templates of all screens by the name of their file, and the files that they load.
type Screens struct {
	rooms     []Room
	templates map[string]*template.Template
	files     *assets.Files
}

// NewScreens parses the templates of rooms. It panics if one is not valid. Each screen has the layout, the parts, and at least a template
// main of its own.
func NewScreens(files *assets.Files, rooms []Room) *Screens {
	s := &Screens{rooms: rooms, templates: map[string]*template.Template{}, files: files}
	base := template.Must(template.New("").Funcs(functions).Funcs(template.FuncMap{"asset": files.Path}).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	s.parse(base, templateFiles)
	for _, one := range rooms {
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

// functions lists the template functions of all rooms. Functions that need a page are methods of [Page].
var functions = template.FuncMap{
	"number":       func(n any) string { return Number(n) },
	"percent":      Percent,
	"span":         func(d time.Duration) string { return Span(d) },
	"spoken":       Spoken,
	"words":        func(code string) string { return strings.ReplaceAll(strings.ReplaceAll(code, "_", " "), "-", " ") },
	"pathpart":     PathPart,
	"campaignname": CampaignName,
	"said":         Words,
	"dict":         dict,
	"joined":       func(all []string) string { return strings.Join(all, ", ") },
	"perline":      func(all []string) string { return strings.Join(all, "\n") },
	"strings":      func(all ...string) []string { return all },
	"second":       func(t time.Time) time.Time { return t.Truncate(time.Second) },
	"len64":        func(all []client.LineFault) int64 { return int64(len(all)) },
}

// Spoken returns a time span of the API in words.
func Spoken(text string) string {
	d, err := duration.Parse(text)
	if err != nil {
		return text
	}
	return duration.Words(d)
}

// Number formats an integer with spaces between thousands: 1 234 567.
func Number(n any) string {
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), " ")
}

// Percent returns a part of a whole in percent, or a dash if the whole is zero.
func Percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// PathPart escapes a segment of a path.
func PathPart(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

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

// draw executes a part of a screen in the share of processors of the visitor's tenant: the month of a calendar takes tens of milliseconds.
func (p *Page) draw(screen, part string) (text []byte, err error) {
	if p.Visitor.Caller.Tenant == uuid.Nil { // no user has signed in, and these pages are short
		return p.site.screens.draw(screen, part, p)
	}
	err = p.site.cfg.Computing.Do(p.Context(), p.Visitor.Caller.Tenant, func() error {
		text, err = p.site.screens.draw(screen, part, p)
		return err
	})
	return text, err
}

// Counted returns a number with its noun in the singular or plural.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

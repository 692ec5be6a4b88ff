package campaigns

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// The uses of a column of a file.
const (
	asRecipient = "recipient"
	asAddress   = "to"
	asZone      = "time_zone"
	asVariable  = "variable"
	asNothing   = "nothing"
)

// columnChoice is a use of a column, with its label.
type columnChoice struct{ Value, Name string }

// columnForm maps the columns of a file to their uses.
type columnForm struct {
	Columns []fileColumn
	Lines   int // that are shown
	Zones   bool
}

// fileColumn is a column of a file.
type fileColumn struct {
	Index   int
	Header  string
	As      string
	Name    string // of the variable
	Samples []string
}

// Choices returns the uses that a column can have.
func (f *columnForm) Choices() []columnChoice {
	all := []columnChoice{{asRecipient, "the recipient"}, {asAddress, "the address"}, {asVariable, "a placeholder of the message"}, {asNothing, "nothing: ignore it"}}
	if f.Zones {
		all = slices.Insert(all, 2, columnChoice{asZone, "the time zone"})
	}
	return all
}

const (
	sampleBytes = 64 << 10 // bytes of a file that are read to find its columns
	sampleLines = 3
	sampleCell  = 60 // characters
)

// sampleColumns reads the columns from the beginning of a file and guesses their use. zones reports whether time zones can be saved.
func sampleColumns(text io.Reader, kind string, zones bool) (*columnForm, error) {
	sample, err := io.ReadAll(io.LimitReader(text, sampleBytes))
	if err != nil {
		return nil, err
	}
	file, err := lists.OpenCSV(bytes.NewReader(sample))
	if err != nil {
		return nil, err
	}
	if err := validSample(sample); err != nil {
		return nil, err
	}
	form := &columnForm{Zones: zones}
	for i, name := range file.Columns {
		form.Columns = append(form.Columns, fileColumn{Index: i, Header: name, Name: variableName(name)})
	}
	for form.Lines < sampleLines {
		cells, _, err := file.Next()
		if err != nil {
			break // the rest is read when the file is sent
		}
		for i := range form.Columns {
			form.Columns[i].Samples = append(form.Columns[i].Samples, sampleOf(cells[i]))
		}
		form.Lines++
	}
	guess(form, kind)
	return form, nil
}

func sampleOf(cell string) string {
	letters := []rune(strings.TrimSpace(cell))
	if len(letters) > sampleCell {
		return string(letters[:sampleCell]) + "…"
	}
	return string(letters)
}

// lettersOf is a heading with an underscore for each character that is neither a letter nor a digit.
func lettersOf(header string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) {
			return c
		}
		return '_'
	}, header)
}

// variableName is a name for the variable of a column, which Placeholder knows how to write.
func variableName(header string) string {
	name := lettersOf(header)
	if name != header {
		name = strings.ToLower(name)
	}
	if name = strings.Trim(name, "_"); name == asRecipient || name == asAddress {
		return name + "_1" // they mean something else
	}
	return name
}

// plainName matches names that a template can use without quotation marks, except for reserved words.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

var languageWords = []string{"and", "or", "contains", "in", "nil", "null", "true", "false", "blank", "empty"}

// Placeholder returns the placeholder of a column in a template; empty if no template can name the column.
func (c fileColumn) Placeholder() string {
	switch {
	case plainName.MatchString(c.Name) && !slices.Contains(languageWords, c.Name):
		return "{{ " + c.Name + " }}"
	case c.Name == "" || strings.Contains(c.Name, "'") && strings.Contains(c.Name, `"`):
		return ""
	case strings.Contains(c.Name, "'"):
		return `{{ ["` + c.Name + `"] }}`
	}
	return "{{ ['" + c.Name + "'] }}"
}

// likelyNames lists common column names, the surest first, in lower case and without separators.
var likelyNames = map[string][]string{
	asRecipient: {"recipient", "recipientid", "userid", "user", "customerid", "customer", "customernumber", "contactid", "id"},
	asZone:      {"timezone", "tz", "zone"},
	"sms":       {"to", "phone", "phonenumber", "mobile", "telephone", "msisdn", "address"},
	"email":     {"to", "email", "emailaddress", "mail", "address"},
	"":          {"to", "token", "devicetoken", "registrationtoken", "address"},
}

// guess takes columns as what their names say.
func guess(form *columnForm, kind string) {
	for i := range form.Columns {
		if form.Columns[i].As = asVariable; form.Columns[i].Name == "" {
			form.Columns[i].As = asNothing
		}
	}
	addresses, known := likelyNames[kind]
	if !known {
		addresses = likelyNames[""]
	}
	form.take(asRecipient, likelyNames[asRecipient])
	form.take(asAddress, addresses)
	if form.Zones {
		form.take(asZone, likelyNames[asZone])
	}
}

// take finds the column that is most likely to be something.
func (f *columnForm) take(as string, names []string) {
	for _, name := range names {
		for i := range f.Columns {
			plain := strings.ReplaceAll(strings.ToLower(lettersOf(f.Columns[i].Header)), "_", "")
			if plain == name && (f.Columns[i].As == asVariable) {
				f.Columns[i].As = as
				return
			}
		}
	}
}

// readColumns reads the choices of a form; nil: it has none.
func readColumns(form url.Values, zones bool) *columnForm {
	f := &columnForm{Zones: zones}
	for i := 0; form.Has(fmt.Sprintf("header[%d]", i)); i++ {
		at := func(field string) string { return strings.TrimSpace(form.Get(fmt.Sprintf("%s[%d]", field, i))) }
		f.Columns = append(f.Columns, fileColumn{Index: i, Header: at("header"), As: at("as"), Name: at("name")})
	}
	if f.Columns == nil {
		return nil
	}
	return f
}

// names are the columns as the API wants them called: what is left out has no name.
func (f *columnForm) names() []string {
	var all []string
	for _, c := range f.Columns {
		switch c.As {
		case asRecipient, asAddress:
			all = append(all, c.As)
		case asVariable:
			all = append(all, c.Name)
		default:
			all = append(all, "")
		}
	}
	return all
}

// of is the place of the column that is taken as something; -1: none is.
func (f *columnForm) of(as string) int {
	return slices.IndexFunc(f.Columns, func(c fileColumn) bool { return c.As == as })
}

// check returns the faults of the choices for a file with these columns.
func (f *columnForm) check(headers []string) error {
	var wrong frame.Faults
	same := len(headers) == len(f.Columns)
	for i := 0; same && i < len(headers); i++ {
		same = oneLine(headers[i]) == oneLine(f.Columns[i].Header) // browsers write line breaks in their own way
	}
	if !same {
		wrong.Add("file", fmt.Errorf("this file has other columns than the one you checked: %s. Show its columns first", strings.Join(headers, ", ")))
		return wrong.Problem()
	}
	if f.of(asRecipient) < 0 {
		wrong.Add("columns", fmt.Errorf("choose which column is the recipient"))
	}
	seen := map[string]bool{}
	for i, name := range f.names() {
		at := fmt.Sprintf("header[%d]", i)
		switch c := f.Columns[i]; {
		case c.As == asVariable && (name == "" || name == asRecipient || name == asAddress):
			wrong.Add(at, fmt.Errorf("give the placeholder a unique name"))
		case name != "" && seen[name], c.As == asZone && seen[" zone"]:
			wrong.Add(at, fmt.Errorf("another column is used for this already"))
		case c.As == asZone:
			seen[" zone"] = true
		}
		seen[name] = true
	}
	return wrong.Problem()
}

package lists

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sendquota/sendquota/internal/rest"
)

// PatientBody is the body of a request, of any length: it is waited for as long as the client goes on sending.
func PatientBody(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	return io.NopCloser(patientBody(w, r))
}

func patientBody(w http.ResponseWriter, r *http.Request) *patientReader {
	return &patientReader{body: r.Body, control: http.NewResponseController(w)}
}

// CSVFile is a text of CSV of any length, read as the audience of a campaign and an import are read: in UTF-8 or UTF-16, its cells
// separated by commas, semicolons or tabs, with the line ends of any program. It is for those who show the columns of a file, or
// hand it on with other names of columns. Nothing but a line is in memory.
type CSVFile struct {
	Columns []string // as the header names them, without spaces around

	file   *LineFile
	prefix string // lines before the header
	behind int    // the line behind the header
}

// OneLine says of which column the cells have no line breaks, as the API reads that of recipients.
func (c *CSVFile) OneLine(column int) { c.file.Single[column] = true }

// OpenCSV reads the header of a text. The error says what is wrong with it, in words for people.
func OpenCSV(text io.Reader) (*CSVFile, error) {
	f := New(context.Background(), text, true, "")
	var bad rest.FieldErrors
	err := f.ReadColumns("the first line has to name the columns", &bad)
	if len(f.Columns) > MaxColumns {
		bad.Add("", TooManyColumns(len(f.Columns)), nil)
	}
	switch {
	case err != nil:
		return nil, err
	case len(bad.List) > 0:
		return nil, errors.New("the first line " + bad.List[0].Message)
	}
	c := &CSVFile{Columns: f.Columns, file: f, behind: f.lines.next}
	if f.begin > 1 {
		c.prefix = "sep=" + string(f.comma) + "\n"
	}
	return c, nil
}

// Next reads the next record that has a cell for each column, and says at which line it begins: the header is line 1. Cells are without
// spaces around them, and without the guard of an export. The error is io.EOF behind the last record, or an [*EncodingError].
func (c *CSVFile) Next() (cells []string, line int, err error) {
	for {
		var found rest.FieldErrors
		_, cells, line, err := c.file.Record(&found)
		if err != nil || len(found.List) == 0 {
			return cells, line, err
		}
	}
}

type badLineKey struct{}

// WithBadLines returns a context for an upload that a part of this program makes: of each line whose fault the answer tells, take is
// called with its number and its text, which is cut short if it is too long, and not to be kept.
func WithBadLines(ctx context.Context, take func(line int, text []byte)) context.Context {
	return context.WithValue(ctx, badLineKey{}, take)
}

// Renamed is the text in UTF-8 with other names of its columns, one for each of them. A column without a name is left out by those
// who read it. All lines keep their numbers. Next is not to be called before.
func (c *CSVFile) Renamed(names []string) io.Reader {
	return io.MultiReader(strings.NewReader(c.heading(names)), bytes.NewReader(c.file.lines.back), c.file.lines.in)
}

// heading is what a text begins with whose columns are renamed.
func (c *CSVFile) heading(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return c.prefix + strings.Join(quoted, string(c.file.comma)) + strings.Repeat("\n", c.behind-c.file.begin) // lines keep their numbers
}

// RenamedBy is what a POSIX shell makes the same text with as Renamed, of the file called so.
func (c *CSVFile) RenamedBy(file string, names []string) string {
	lines, from := c.file.lines, file
	read := ""
	if lines.utf16 {
		read, from = "iconv -f UTF-16 -t UTF-8 "+file+" | ", ""
	}
	if lines.returns {
		if !lines.utf16 {
			read, from = "< "+file+" ", ""
		}
		read += `tr '\r' '\n' | `
	}
	heading := strings.ReplaceAll(strings.TrimSuffix(c.heading(names), "\n"), "'", `'\''`)
	return "{ printf '%s\\n' '" + heading + "'; " + read + strings.TrimSpace(fmt.Sprintf("tail -n +%d %s", c.behind, from)) + "; }"
}

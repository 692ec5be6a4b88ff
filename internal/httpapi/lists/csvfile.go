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

// PatientBody returns the body of a request of any length. It waits as long as the client continues to send.
func PatientBody(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	return io.NopCloser(patientBody(w, r))
}

func patientBody(w http.ResponseWriter, r *http.Request) *patientReader {
	return &patientReader{body: r.Body, control: http.NewResponseController(w)}
}

// CSVFile is a text of CSV of any length, read as the audience of a campaign and an import are read: in UTF-8 or UTF-16, its cells
// separated by commas, semicolons or tabs, with any line ends. Use it to show the columns of a file, or to
// pass it on with other names of columns. Only one line is in memory.
type CSVFile struct {
	Columns []string // as the header names them, without spaces around

	file   *LineFile
	prefix string // lines before the header
	behind int    // the line behind the header
}

// OneLine declares that the cells of a column have no line breaks, as the API does for the column of recipients.
func (c *CSVFile) OneLine(column int) { c.file.Single[column] = true }

// OpenCSV reads the header of a text. The error can be shown to users.
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

// Next reads the next record that has a cell for each column, and returns the line at which it begins: the header is line 1. Cells have no
// spaces around them, and no guard of an export. The error is io.EOF after the last record, or an [*EncodingError].
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

// WithBadLines returns a context for an upload that another part of this program makes: for each line with an error in the answer, take is
// called with its number and its text, which is cut if it is too long, and must not be kept.
func WithBadLines(ctx context.Context, take func(line int, text []byte)) context.Context {
	return context.WithValue(ctx, badLineKey{}, take)
}

// Renamed returns the text in UTF-8 with other names of its columns, one for each. Readers ignore a column without a
// name. All lines keep their numbers. Next must not be called before.
func (c *CSVFile) Renamed(names []string) io.Reader {
	return io.MultiReader(strings.NewReader(c.heading(names)), bytes.NewReader(c.file.lines.back), c.file.lines.in)
}

// heading returns the beginning of a text with renamed columns.
func (c *CSVFile) heading(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return c.prefix + strings.Join(quoted, string(c.file.comma)) + strings.Repeat("\n", c.behind-c.file.begin) // lines keep their numbers
}

// RenamedBy returns a POSIX shell command that prints the same text as Renamed, for the file of this name.
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

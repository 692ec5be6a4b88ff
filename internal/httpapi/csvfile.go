package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// PatientBody is the body of a request, of any length: it is waited for as long as the client goes on sending.
func PatientBody(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	return io.NopCloser(&patientReader{body: r.Body, control: http.NewResponseController(w)})
}

// CSVFile is a text of CSV of any length, read as the audience of a campaign and an import are read: in UTF-8 or UTF-16, its cells
// separated by commas, semicolons or tabs, with the line ends of any program. It is for those who show the columns of a file, or
// hand it on with other names of columns. Nothing but a line is in memory.
type CSVFile struct {
	Columns []string // as the header names them, without spaces around

	file   *lineFile
	comma  byte
	prefix string // lines before the header
	begin  int    // the line behind the header
}

// OpenCSV reads the header of a text. The error says what is wrong with it, in words for people.
func OpenCSV(text io.Reader) (*CSVFile, error) {
	f := &lineFile{ctx: context.Background(), lines: newLineReader(text, true), csv: true}
	var bad fieldErrors
	line, err := f.header("the first line has to name the columns", &bad)
	if err != nil {
		return nil, err
	}
	if len(bad.list) > 0 && bad.list[0].Message == errEncoding.Error() {
		return nil, errors.New("the first line is not in UTF-8; save the list as “CSV UTF-8”, and choose it again")
	}
	if len(bad.list) > 0 {
		return nil, errors.New("the first line " + bad.list[0].Message)
	}
	c := &CSVFile{file: f, comma: separator(line)}
	names, err := splitRecord(line, c.comma)
	if err != nil {
		return nil, fmt.Errorf("the first line %w", err)
	}
	if len(names) > maxColumns {
		return nil, fmt.Errorf("the first line must have at most %d columns, has %d", maxColumns, len(names))
	}
	for _, name := range names {
		c.Columns = append(c.Columns, strings.TrimSpace(name))
	}
	c.begin = f.lines.next
	if begin := f.lines.next - 1 - strings.Count(line, "\n"); begin > 1 {
		c.prefix = "sep=" + string(c.comma) + "\n" // lines keep their numbers
	}
	return c, nil
}

// Next reads the next record that has a cell for each column, and says at which line it begins: the header is line 1. The error is
// io.EOF behind the last one.
func (c *CSVFile) Next() (cells []string, line int, err error) {
	for {
		text, line, long, err := c.file.lines.line()
		if err != nil {
			return nil, line, err
		}
		if cells, err := splitRecord(string(text), c.comma); err == nil && !long && len(cells) == len(c.Columns) && utf8.Valid(text) {
			return cells, line, nil
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
	return c.prefix + strings.Join(quoted, string(c.comma)) + "\n"
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
	return "{ printf '%s\\n' '" + heading + "'; " + read + strings.TrimSpace(fmt.Sprintf("tail -n +%d %s", c.begin, from)) + "; }"
}

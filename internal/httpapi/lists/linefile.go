// Package lists reads uploads and writes exports of any number of lines, as CSV or NDJSON, line by line. It accepts the CSV of
// spreadsheets, and writes CSV that no spreadsheet reads as formulas.
package lists

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/rest"
)

// MaxErrors is the number of rejected lines with errors in an answer.
const MaxErrors = 100

// LineFault describes the errors of a line.
type LineFault struct {
	Line    int    `json:"line" doc:"The number of the line; the header is line 1."`
	Message string `json:"message"`
}

// LineFile is a body with any number of lines: CSV with a header, or NDJSON. The zero value is not useful.
type LineFile struct {
	Context context.Context
	lines   *lineReader
	CSV     bool
	remark  string // the fate of the lines before a body breaks off

	comma   byte     // of CSV: separates cells
	Columns []string // of CSV: the names in the header, without spaces around them
	Single  []bool   // of CSV: whether the cells of a column have no line breaks
	begin   int      // of CSV: the line of the header

	Rows     int // lines except the header and empty ones
	Rejected int
	Errors   []LineFault
}

// Open opens the body of a call. It waits as long as the caller continues to send.
func Open(c *rest.Call, csv bool, remark string) *LineFile {
	return New(c.Writer.Whole, patientBody(c.Writer, c.Request), csv, remark)
}

// New returns a file of lines that are read from in. remark is the fate of the lines before an unreadable one.
func New(ctx context.Context, in io.Reader, csv bool, remark string) *LineFile {
	return &LineFile{Context: ctx, lines: newLineReader(in, csv), CSV: csv, remark: remark, Errors: []LineFault{}}
}

// next reads the next line. A body that breaks off is an error of the request.
func (f *LineFile) next() (text []byte, number int, long bool, err error) {
	text, number, long, err = f.lines.line()
	if err != nil && !errors.Is(err, io.EOF) {
		if gone := f.Context.Err(); gone != nil {
			return text, number, long, gone
		}
		return text, number, long, rest.Malformed(fmt.Sprintf("could not be read to its end; %d lines before line %d were read, and %s", f.Rows, number, f.remark))
	}
	return text, number, long, err
}

// header reads the header of CSV, and adds the errors of its line. Before it, Excel may write a line with the separator.
func (f *LineFile) header(columns string, bad *rest.FieldErrors) (line string, err error) {
	text, number, long, err := f.next()
	if err == nil && !long && len(text) == 5 && strings.HasPrefix(strings.ToLower(string(text)), "sep=") {
		text, number, long, err = f.next()
	}
	f.begin = number
	switch {
	case errors.Is(err, io.EOF):
		bad.Add("body.header", "is missing; "+columns, nil)
	case err != nil:
		return "", err
	case otherFile(text) != "":
		bad.Add("body.header", otherFile(text), nil)
	case long:
		bad.Add("body.header", fmt.Sprintf("must have at most %d bytes", maxImportLine), nil)
	case !utf8.Valid(text):
		bad.Add("body.header", notUTF8, nil)
	}
	return string(text), nil
}

// otherFile returns an error for a file that begins with this line, if it is another type of file that users take for CSV, or "".
func otherFile(line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte("PK\x03\x04")):
		return "begins like a workbook, such as .xlsx, or another packed file; save it as CSV, in UTF-8"
	case len(line) > 1 && (line[0] == 0) != (line[1] == 0):
		return "is in UTF-16 without a byte order mark; save the file as CSV, in UTF-8"
	}
	return ""
}

// OneLine declares the columns with cells that have no line breaks: if such a cell seems to have one, a quotation mark is not closed.
func (f *LineFile) OneLine(is func(name string) bool) {
	for i, name := range f.Columns {
		f.Single[i] = is(name)
	}
}

// Record reads the next line that is not empty, and counts it. It adds the errors of the line to found; without errors, a line of
// CSV has a cell for each column. CSV that is not in UTF-8 is rejected as a whole, because letters other than a to z would be lost.
func (f *LineFile) Record(found *rest.FieldErrors) (text []byte, cells []string, number int, err error) {
	for {
		text, number, long, err := f.next()
		if err != nil {
			return nil, nil, number, err
		}
		var cells []string
		switch valid := utf8.Valid(text); {
		case long:
			found.Add("", fmt.Sprintf("must have at most %d bytes", maxImportLine), nil)
		case len(text) == 0:
			continue
		case !valid && f.CSV && !f.lines.utf16:
			return nil, nil, number, &EncodingError{number}
		case !valid:
			found.Add("", errEncoding.Error(), nil)
		case f.CSV:
			if cells = f.cells(string(text), found); cells == nil && len(found.List) == 0 {
				continue
			}
		}
		f.Rows++
		return text, cells, number, nil
	}
}

// Refused returns the error of a body that was not read to its end. For a line that is not in UTF-8, it reports the fate of the lines above it.
func (f *LineFile) Refused(err error) error {
	if wrong, ok := errors.AsType[*EncodingError](err); ok {
		var bad rest.FieldErrors
		bad.Add("body", fmt.Sprintf("%s; %d lines above it were read, and %s", wrong, f.Rows, f.remark), nil)
		return bad.Err()
	}
	return err
}

// Reject counts a rejected line, and keeps its errors up to a bound.
func (f *LineFile) Reject(number int, text []byte, found rest.FieldErrors) {
	if f.Rejected++; len(f.Errors) == MaxErrors {
		return
	}
	if take, ok := f.Context.Value(badLineKey{}).(func(int, []byte)); ok {
		take(number, text)
	}
	const told = 5
	var message strings.Builder
	for i, one := range found.List[:min(len(found.List), told)] {
		if i > 0 {
			message.WriteString("; ")
		}
		if one.Field != "" {
			message.WriteString(one.Field + ": ")
		}
		message.WriteString(one.Message)
	}
	if more := len(found.List) - told; more > 0 {
		fmt.Fprintf(&message, "; and %d more", more)
	}
	f.Errors = append(f.Errors, LineFault{number, message.String()})
}

// IsCSV reports whether the body is CSV; otherwise it is NDJSON.
func IsCSV(h http.Header) (asCSV bool, err error) {
	if err := rest.CheckCoding(h); err != nil {
		return false, err
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if charset := params["charset"]; err == nil && (media == "text/csv" || media == "application/x-ndjson") && (rest.IsUTF8(charset) || strings.HasPrefix(strings.ToLower(charset), "utf-16")) {
		return media == "text/csv", nil
	}
	return false, &rest.Refusal{Kind: rest.UnsupportedMedia, Detail: "send the body as text/csv with a header line, or as application/x-ndjson, in UTF-8"}
}

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// CSVFile is a text of CSV of any length, read as the audience of a campaign and an import are read: in UTF-8 or UTF-16, its cells
// separated by commas, semicolons or tabs, with the line ends of any program. It is for those who show the columns of a file, or
// hand it on with other names of columns. Nothing but a line is in memory.
type CSVFile struct {
	Columns []string // as the header names them, without spaces around

	file   *lineFile
	comma  byte
	prefix string // lines before the header
}

// OpenCSV reads the header of a text. The error says what is wrong with it, in words for people.
func OpenCSV(text io.Reader) (*CSVFile, error) {
	f := &lineFile{ctx: context.Background(), lines: newLineReader(text, true), csv: true}
	var bad fieldErrors
	line, err := f.header("the first line has to name the columns", &bad)
	if err != nil {
		return nil, err
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

// Renamed is the text in UTF-8 with other names of its columns, one for each of them. A column without a name is left out by those
// who read it. All lines keep their numbers. Next is not to be called before.
func (c *CSVFile) Renamed(names []string) io.Reader {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	header := c.prefix + strings.Join(quoted, string(c.comma)) + "\n"
	return io.MultiReader(strings.NewReader(header), bytes.NewReader(c.file.lines.back), c.file.lines.in)
}

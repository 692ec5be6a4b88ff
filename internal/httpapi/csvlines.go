package httpapi

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Audiences, imports of recipients, and files whose columns the console shows are read by the methods in this file.

// aboutLists documents CSV that is uploaded.
const aboutLists = "In CSV, empty rows are skipped, and the apostrophes that exports add to guard cells are removed. A recipient or an address such as 4.91702E+11 is an error of its line: a spreadsheet has kept only its first digits. " +
	"CSV with a line that is not in UTF-8 is rejected as a whole."

// EncodingError says that a line of CSV is not in UTF-8, and what to do.
type EncodingError struct{ Line int }

const notUTF8 = "is not in UTF-8, so that letters such as ä or é would be lost: save the list as “CSV UTF-8”, and send it again"

func (e *EncodingError) Error() string { return fmt.Sprintf("line %d %s", e.Line, notUTF8) }

// readColumns reads the header, and adds what is wrong with it as a line. missing says what a header has to have.
func (f *lineFile) readColumns(missing string, bad *fieldErrors) error {
	line, err := f.header(missing, bad)
	if err != nil || len(bad.list) > 0 {
		return err
	}
	f.comma = separator(line)
	names, err := splitRecord(line, f.comma)
	if err != nil {
		bad.add("body.header", err.Error(), shown(line))
		return nil
	}
	for _, name := range names {
		f.columns = append(f.columns, strings.TrimSpace(name))
	}
	f.single = make([]bool, len(names))
	f.lines.comma, f.lines.whole = f.comma, f.whole
	return nil
}

// checkColumns adds what is wrong with the names of the columns. A column without a name is left out by all who read it.
func (f *lineFile) checkColumns(bad *fieldErrors) {
	seen := map[string]bool{}
	for i, name := range f.columns {
		meant := strings.Map(func(c rune) rune {
			if invisible(c) {
				return -1
			}
			return c
		}, name)
		if wrong := wrongName(name); wrong != "" {
			bad.add(item("body.header", i), wrong, shown(name))
		} else if seen[meant] {
			bad.add(item("body.header", i), "must not name a column twice", shown(name))
		}
		seen[meant] = meant != ""
	}
	if !seen["recipient"] {
		bad.add("body.header", "must have the column recipient, in lower case", shown(strings.Join(f.columns, string(f.comma))))
	}
}

const noNUL = "must not have the character U+0000"

// wrongName says what is in the name of a column that people cannot see. A joiner between letters belongs to some scripts.
func wrongName(name string) string {
	for i, c := range name {
		inside := i > 0 && i+utf8.RuneLen(c) < len(name)
		switch {
		case c == 0:
			return noNUL
		case invisible(c) && !(inside && (c == '\u200C' || c == '\u200D')):
			return fmt.Sprintf("has the invisible character %U; delete the heading and type it again", c)
		}
	}
	return ""
}

// invisible reports whether a character looks like none, or like the usual space.
func invisible(c rune) bool {
	return c != ' ' && c != '\u3000' && unicode.In(c, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// whole reports whether several lines are a record: it has the cells of the header, and line breaks only where they may be.
func (f *lineFile) whole(record []byte) bool {
	cells, err := splitRecord(string(record), f.comma)
	if err != nil || len(cells) != len(f.columns) || !utf8.Valid(record) {
		return false
	}
	for i, cell := range cells {
		if f.single[i] && strings.Contains(strings.TrimSpace(cell), "\n") {
			return false
		}
	}
	return true
}

// cells divides a record into its cells, without spaces around them and without guards. A record whose cells are all empty has none, and
// found has what is wrong with one.
func (f *lineFile) cells(record string, found *fieldErrors) []string {
	cells, err := splitRecord(record, f.comma)
	switch {
	case err != nil:
		found.add("", err.Error(), nil)
	case !slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) != "" }):
		return nil
	case len(cells) != len(f.columns):
		found.add("", unevenCells(len(cells), len(f.columns)), nil)
	}
	for i, cell := range cells {
		cells[i] = unguarded(cell)
	}
	return cells
}

// shortNumber is how spreadsheets show, and save, a number that is too long for its column.
var shortNumber = regexp.MustCompile(`^[+-]?[0-9]+([.,][0-9]+)?[eE]\+[0-9]+$`)

// shortened says what is wrong with an id or an address of which a spreadsheet has kept the first digits; empty: it is none.
func shortened(cell string) string {
	if !shortNumber.MatchString(cell) {
		return ""
	}
	return "is " + cell + ", a number that a spreadsheet has shortened: its last digits are lost. Format the column as text, fill it in again, and save the list again"
}

var (
	errQuote    = errors.New("has a quotation mark that is not closed")
	errBehind   = errors.New("has text behind a quotation mark that ends a cell")
	errEncoding = errors.New("must be valid UTF-8")
)

// maxColumns is how many columns an audience may have, and how many members a line of it.
const maxColumns = 500

func tooManyColumns(n int) string {
	return fmt.Sprintf("must have at most %d columns, has %d", maxColumns, n)
}

package lists

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/rest"
)

// The methods in this file read audiences, imports of recipients, and files with columns that the console shows.

// AboutLists documents uploaded CSV.
const AboutLists = "In CSV, empty rows are skipped, and the apostrophes that exports add to guard cells are removed. A recipient or an address such as 4.91702E+11 is an error of its line: a spreadsheet has kept only its first digits. " +
	"CSV with a line that is not in UTF-8 is rejected as a whole."

// EncodingError reports a line of CSV that is not in UTF-8, and how to correct the file.
type EncodingError struct{ Line int }

const notUTF8 = "is not in UTF-8, so that letters such as ä or é would be lost: save the list as “CSV UTF-8”, and send it again"

func (e *EncodingError) Error() string { return fmt.Sprintf("line %d %s", e.Line, notUTF8) }

// ReadColumns reads the header, and adds the errors of its line. missing describes the required columns.
func (f *LineFile) ReadColumns(missing string, bad *rest.FieldErrors) error {
	line, err := f.header(missing, bad)
	if err != nil || len(bad.List) > 0 {
		return err
	}
	f.comma = separator(line)
	names, err := splitRecord(line, f.comma)
	if err != nil {
		bad.Add("body.header", err.Error(), rest.Shown(line))
		return nil
	}
	for _, name := range names {
		f.Columns = append(f.Columns, strings.TrimSpace(name))
	}
	f.Single = make([]bool, len(names))
	f.lines.comma, f.lines.whole = f.comma, f.whole
	return nil
}

// CheckColumns adds the errors in the names of the columns, which must include the required ones. All readers ignore a column without a name.
func (f *LineFile) CheckColumns(bad *rest.FieldErrors, required ...string) {
	seen := map[string]bool{}
	for i, name := range f.Columns {
		meant := strings.Map(func(c rune) rune {
			if invisible(c) {
				return -1
			}
			return c
		}, name)
		if wrong := WrongName(name); wrong != "" {
			bad.Add(rest.Item("body.header", i), wrong, rest.Shown(name))
		} else if seen[meant] {
			bad.Add(rest.Item("body.header", i), "must not name a column twice", rest.Shown(name))
		}
		seen[meant] = meant != ""
	}
	for _, name := range required {
		if !seen[name] {
			bad.Add("body.header", "must have the column "+name+", in lower case", rest.Shown(strings.Join(f.Columns, string(f.comma))))
		}
	}
}

// NoNUL is the error of a text with the character U+0000, which Postgres cannot store.
const NoNUL = "must not have the character U+0000"

// WrongName returns an error for an invisible character in the name of a column, or "". A joiner between letters belongs to some scripts.
func WrongName(name string) string {
	for i, c := range name {
		inside := i > 0 && i+utf8.RuneLen(c) < len(name)
		switch {
		case c == 0:
			return NoNUL
		case invisible(c) && !(inside && (c == '\u200C' || c == '\u200D')):
			return fmt.Sprintf("has the invisible character %U; delete the heading and type it again", c)
		}
	}
	return ""
}

// invisible reports whether a character is invisible, or looks like the usual space.
func invisible(c rune) bool {
	return c != ' ' && c != '\u3000' && unicode.In(c, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// whole reports whether several lines are one record: it has as many cells as the header, and line breaks only in columns that allow them.
func (f *LineFile) whole(record []byte) bool {
	cells, err := splitRecord(string(record), f.comma)
	if err != nil || len(cells) != len(f.Columns) || !utf8.Valid(record) {
		return false
	}
	for i, cell := range cells {
		if f.Single[i] && strings.Contains(strings.TrimSpace(cell), "\n") {
			return false
		}
	}
	return true
}

// cells splits a record into its cells, without spaces around them and without guards. For a record of empty cells, it returns none.
// It adds the errors of the record to found.
func (f *LineFile) cells(record string, found *rest.FieldErrors) []string {
	cells, err := splitRecord(record, f.comma)
	switch {
	case err != nil:
		found.Add("", err.Error(), nil)
	case !slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) != "" }):
		return nil
	case len(cells) != len(f.Columns):
		found.Add("", unevenCells(len(cells), len(f.Columns)), nil)
	}
	for i, cell := range cells {
		cells[i] = unguarded(cell)
	}
	return cells
}

// shortNumber matches the form that spreadsheets use for a number that is too long for its column.
var shortNumber = regexp.MustCompile(`^[+-]?[0-9]+([.,][0-9]+)?[eE]\+[0-9]+$`)

// Shortened returns an error for an id or an address that a spreadsheet has shortened to its first digits, or "".
func Shortened(cell string) string {
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

// MaxColumns is the largest number of columns of CSV, and of members of a line of NDJSON.
const MaxColumns = 500

// TooManyColumns returns the error of a header with n columns.
func TooManyColumns(n int) string {
	return fmt.Sprintf("must have at most %d columns, has %d", MaxColumns, n)
}

package httpapi

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestImport_OpenQuotes: whatever quotation marks are not closed, bad lines are told by their numbers and no good one goes with
// them; what is a record of several lines stays one.
func TestImport_OpenQuotes(t *testing.T) {
	b := setup(t)
	many := strings.Repeat("bad,\"x\ngood,1\n", 300)
	crowd := strings.Repeat("filler,1\n", 7000) // near the length of a line
	for name, row := range map[string]struct {
		text string
		want string // rows, created, updated, rejected, the lines of the first faults
	}{
		"two":                       {"a,1\nb,\"x\nc,3\nd,4\ne,\"y\nf,6\n", "6 4 0 2 [3 6]"},
		"three":                     {"a,1\nb,\"x\nc,3\nd,\"y\ne,5\nf,\"z\ng,7", "7 4 0 3 [3 5 7]"},
		"one behind the other":      {"b,\"x\nc,\"y\nd,4\n", "3 1 0 2 [2 3]"},
		"too many cells":            {"b,\"x\nc,3\",4\nd,5\n", "3 1 0 2 [2 3]"},
		"a recipient of many lines": {"\"b,1\nc,2\nd\",3\ne,4\n", "4 3 0 1 [2]"},
		"well":                      {"a,\"x\n\n\"\"y\"\"\nz\"\nb,\"\n\"\n", "2 2 0 0 []"},
		"well, behind a fault":      {"a,\"x\nb,\"y\nz\"\nc,\"1\n2\"\n", "3 2 0 1 [2]"},
		"three hundred":             {many, "600 1 299 300 [2 4 6]"},
		"long behind its mark":      {"b,\"x\n" + crowd + "c,\"" + strings.Repeat("y", 6000) + "\nd,4\n", "7003 2 6999 2 [2 7003]"},
	} {
		t.Run(name, func(t *testing.T) {
			b.exec(`DELETE FROM recipients`)
			r := b.importCSV("recipient,attribute.a\n"+row.text).must(t, 200)
			lines := []any{}
			for _, e := range r.at(t, "errors").([]any)[:min(3, len(r.at(t, "errors").([]any)))] {
				lines = append(lines, e.(map[string]any)["line"])
			}
			if got := fmt.Sprint(r.at(t, "rows"), r.at(t, "created"), r.at(t, "updated"), r.at(t, "rejected"), lines); got != row.want {
				t.Errorf("%s, want %s: %.400s", got, row.want, r.text)
			}
		})
	}
}

// TestLineReader_Bounded: however a text plays with quotation marks, every line comes once, and little is read twice.
func TestLineReader_Bounded(t *testing.T) {
	const size = mostAgain + 2<<20
	for _, unit := range []string{"x\",\"\n", "\"\n", "a,\"\"\"\n", "a,\"x\n", "a,\"x\n" + strings.Repeat("b,1\n", 10_000), "\n"} {
		n := size / len(unit)
		l := newLineReader(strings.NewReader(strings.Repeat(unit, n)), true)
		l.whole = func([]byte) bool { return false }
		lines := 0
		for {
			_, number, long, err := l.line()
			if errors.Is(err, io.EOF) {
				break
			}
			if lines++; err != nil || long || number != lines {
				t.Fatalf("%.10q: line %d is %d, %t, %v", unit, lines, number, long, err)
			}
		}
		if want := n * strings.Count(unit, "\n"); lines != want {
			t.Errorf("%.10q: %d lines of %d", unit, lines, want)
		}
		if most := l.read + mostAgain + 3*maxImportLine; l.again > most {
			t.Errorf("%.10q: %d bytes are read again, of %d", unit, l.again, l.read)
		}
	}
}

// TestLineReader_Texts: what spreadsheets of all ages write is read line by line, and half a character, or a text that was cut off, takes
// no good line with it.
func TestLineReader_Texts(t *testing.T) {
	utf16 := func(units ...any) string {
		text := []byte("\xFF\xFE")
		for _, u := range units {
			switch u := u.(type) {
			case string:
				for _, b := range []byte(u) {
					text = append(text, b, 0)
				}
			case int:
				text = append(text, byte(u), byte(u>>8))
			}
		}
		return string(text)
	}
	full := strings.Repeat("x", maxImportLine)
	for name, row := range map[string]struct {
		text string
		want []string
		err  error
	}{
		"carriage returns":          {"a,b\r1,2\r3,4\r", []string{"a,b", "1,2", "3,4"}, io.EOF},
		"Windows":                   {"a,b\r\n1,2\r\n", []string{"a,b", "1,2"}, io.EOF},
		"half a character":          {utf16("a\nu1,", 0xD800, "\nu2\n"), []string{"a", "u1,\xFF", "u2"}, io.EOF},
		"the other half":            {utf16("u1,", 0xDC00, "\nu2\n"), []string{"u1,\xFF", "u2"}, io.EOF},
		"two halves of two":         {utf16("u1,", 0xD800, 0xD800, 0xDC00, "\nu2\n"), []string{"u1,\xFF\U00010000", "u2"}, io.EOF},
		"cut off within a unit":     {utf16("a\nb") + "x", []string{"a"}, io.ErrUnexpectedEOF},
		"a line as long as may be":  {full + "\n" + full + "\r\n1", []string{full, full, "1"}, io.EOF},
		"a line longer than may be": {full + "y\n1", []string{"long", "1"}, io.EOF},
	} {
		l := newLineReader(strings.NewReader(row.text), true)
		var got []string
		text, _, long, err := l.line()
		for ; err == nil; text, _, long, err = l.line() {
			if long {
				text = []byte("long")
			}
			got = append(got, string(text))
		}
		if !slices.Equal(got, row.want) || !errors.Is(err, row.err) {
			t.Errorf("%s: %.200q, %v", name, got, err)
		}
	}
}

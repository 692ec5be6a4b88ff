package lists

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

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

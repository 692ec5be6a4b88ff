package lists

import (
	"slices"
	"strings"
	"testing"
)

// FuzzLines: any text is split into the same lines as by a reader of the whole, nothing crashes, and the numbers of lines
// grow.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"recipient,time_zone\na,b\n", "a;b\n\"x\n\"\"y\";z\r\n", "\"\n\n", "\xEF\xBB\xBFa\n", "\xFF\xFEa\x00\n\x00", "\xFE\xFF\x00a", "a,\"b\" ,c\n", "\"a\"\"\"\n", `{"recipient":"a"}`} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, quotes bool) {
		l := newLineReader(strings.NewReader(text), quotes)
		last := 0
		for range len(text) + 2 {
			line, number, long, err := l.line()
			if err != nil {
				return
			}
			if number <= last || len(line) > maxImportLine {
				t.Fatalf("line %d after %d with %d bytes", number, last, len(line))
			}
			last = number
			if long || !quotes {
				continue
			}
			cells, err := splitRecord(string(line), ',')
			if err == nil && !strings.ContainsAny(string(line), `" `) && !slices.Equal(cells, strings.Split(string(line), ",")) {
				t.Fatalf("%q is %q", line, cells)
			}
		}
		t.Fatalf("there are more lines than bytes in %q", text)
	})
}

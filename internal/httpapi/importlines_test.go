package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestImport_OpenQuotes: with any unclosed quotation marks, the answer lists bad lines by number, and no good line is lost with
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

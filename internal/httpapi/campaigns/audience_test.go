package campaigns

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/rest"
)

// FuzzAudienceLine: whatever a header and a line are, the line is at fault, or has a recipient within all bounds, and variables that are
// an object of scalars.
func FuzzAudienceLine(f *testing.F) {
	for _, seed := range [][2]string{
		{"recipient,to,name", "a,+45,\"x\"\"y\""}, {"name;recipient", "x;a"}, {"recipient\t\"na,me\"", "a\t\x00"}, {"recipient,,a b", "a,1,2"},
		{"", `{"recipient":"a","to":null,"n":1e5,"t":true,"s":"\u00e9\ud83d\ude00"}`}, {"", `{"recipient":"a","x":{}}`}, {"", `{"recipient":"a","\ud800":1}`}, {"", `[]`}, {"", `{"recipient":"a"} x`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, header, line string) {
		if !utf8.ValidString(header) || !utf8.ValidString(line) {
			return
		}
		var (
			l     broadcast.AudienceLine
			found rest.FieldErrors
		)
		if header == "" {
			rest.ReadAgain([]byte(line), func(r *rest.Reader) { readAudienceLine(r, &l, &found) })
		} else {
			x := &audience{LineFile: lists.New(t.Context(), strings.NewReader(header+"\n"+line+"\n"), true, "")}
			if x.readHeader() != nil {
				return
			}
			_, cells, _, err := x.Record(&found)
			if err != nil || cells == nil || len(found.List) > 0 {
				return
			}
			x.csvLine(cells, &l, &found)
		}
		if len(found.List) > 0 {
			return
		}
		if rest.Unfit(l.Recipient, 1, pushes.MaxRecipient) != "" || rest.Unfit(l.To, 0, pushes.MaxTo) != "" {
			t.Fatalf("%q, %q", l.Recipient, l.To)
		}
		if l.Variables == nil {
			return
		}
		var variables map[string]any
		if err := json.Unmarshal(l.Variables, &variables); err != nil || bytes.Contains(l.Variables, []byte{0}) {
			t.Fatalf("%q: %v", l.Variables, err)
		}
		for name, v := range variables {
			switch v.(type) {
			case map[string]any, []any:
				t.Fatalf("%s is %v", name, v)
			}
		}
	})
}

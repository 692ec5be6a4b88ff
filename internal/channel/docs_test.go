package channel

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the codes into the documentation")

// The tables of docs/channels.md list the codes in use.
func TestDocs_Codes(t *testing.T) {
	const path = "../../docs/channels.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, want := range map[string]string{"sms": codeTable(twilioCodes()), "fcm": codeTable(fcmCodes()), "apns": codeTable(apnsReasons()), "email": blameTable()} {
		begin, end := "<!-- "+name+": written by `go test ./internal/channel -run Docs -update` -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		table, after, foundEnd := strings.Cut(rest, end)
		if !found || !foundEnd {
			t.Fatalf("%s has no place for the codes of %s", path, name)
		}
		if table != want && !*update {
			t.Errorf("the codes of %s in %s are out of date; run: go test ./internal/channel -run Docs -update\ngot:\n%s\nwant:\n%s", name, path, table, want)
		}
		page = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// kindWords are the outcomes of codes in the words of the docs.
var kindWords = []struct {
	kind  kind
	words string
}{
	{unregistered, "refused permanently, unregistered"}, {closedAddress, "refused permanently; only this address"}, {stopped, "refused permanently; the address is suppressed (stop)"}, {permanent, "refused permanently"},
	{busyAddress, "refused, tried again; only this address waits"}, {temporary, "refused, tried again"},
}

// codeTable lists permanent codes first.
func codeTable(codes map[string]meaning) string {
	var b strings.Builder
	b.WriteString("\n| code | says | outcome |\n|---|---|---|\n")
	for _, row := range kindWords {
		for _, code := range slices.Sorted(maps.Keys(codes)) {
			if m := codes[code]; m.kind == row.kind {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, m.text, row.words)
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

// blameTable lists the replies of mail servers that blame the operator.
func blameTable() string {
	var b strings.Builder
	b.WriteString("\n| code, or words | says | outcome |\n|---|---|---|\n")
	for _, m := range mailBlames() {
		what := "`" + strings.ReplaceAll(m.codes, " ", "`, `") + "`"
		if m.words != "" {
			what = "“" + strings.ReplaceAll(m.words, ", ", "”, “") + "”"
		}
		fmt.Fprintf(&b, "| %s | %s | refused, tried again: the operator must act |\n", what, m.text)
	}
	b.WriteString("\n")
	return b.String()
}

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
	for name, codes := range map[string]map[string]meaning{"sms": twilioCodes(), "fcm": fcmCodes(), "apns": apnsReasons()} {
		begin, end := "<!-- "+name+": written by `go test ./internal/channel -run Docs -update` -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		table, after, foundEnd := strings.Cut(rest, end)
		if !found || !foundEnd {
			t.Fatalf("%s has no place for the codes of %s", path, name)
		}
		if want := codeTable(codes); table != want && !*update {
			t.Errorf("the codes of %s in %s are out of date; run: go test ./internal/channel -run Docs -update\ngot:\n%s\nwant:\n%s", name, path, table, want)
		}
		page = before + begin + codeTable(codes) + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// codeTable lists what is for good first.
func codeTable(codes map[string]meaning) string {
	var b strings.Builder
	b.WriteString("\n| code | says | outcome |\n|---|---|---|\n")
	for _, want := range []struct {
		meaning
		outcome string
	}{{meaning{final: true, unregistered: true}, "refused for good, unregistered"}, {meaning{final: true}, "refused for good"}, {meaning{}, "refused, tried again"}} {
		for _, code := range slices.Sorted(maps.Keys(codes)) {
			if m := codes[code]; m.final == want.final && m.unregistered == want.unregistered {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, m.text, want.outcome)
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

var update = flag.Bool("update", false, "write the settings into docs/settings.md")

// TestDocs_Settings compares the table of docs/settings.md with the settings that are read.
func TestDocs_Settings(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/settings.md", "-update` -->\n", "<!-- /settings -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the settings between %q and %q", path, begin, end)
	}
	want := settingsTable()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the settings in %s are out of date; run: go test ./internal/config -run Docs -update\ngot:\n%s\nwant:\n%s", path, table, want)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("\n| setting | default | meaning |\n|---|---|---|\n")
	row := func(s strictyaml.Setting) {
		switch s.Default {
		case "{}": // a section; its settings follow
		case "":
			fmt.Fprintf(&b, "| `%s` | | %s |\n", s.Name, s.Meaning)
		case required:
			fmt.Fprintf(&b, "| `%s` | *required* | %s |\n", s.Name, s.Meaning)
		default:
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.Name, s.Default, s.Meaning)
		}
	}
	var c Config
	strictyaml.Describe(c.variables, row)
	strictyaml.Describe(c.settings, row)
	b.WriteString("\n")
	return b.String()
}

package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisions: every record of docs/decisions is listed, has the four sections, and measures with tests and benchmarks
// that exist. One that was replaced names its successors, and the list marks it.
func TestDecisions(t *testing.T) {
	list, err := os.ReadFile("../docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob("../docs/decisions/0*.md")
	if err != nil || len(records) < 8 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	command := regexp.MustCompile(`go test \./([a-z0-9/]+).*? -(?:run|bench) '?([A-Z][A-Za-z|]+)`)
	exists := testsByFolder(t)
	for _, path := range records {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(list), "("+filepath.Base(path)+")") {
			t.Errorf("docs/decisions/README.md does not list %s", path)
		}
		for _, section := range []string{"Context.", "Decision.", "Set aside.", "Measured."} {
			if !strings.Contains(string(text), "**"+section+"**") {
				t.Errorf("%s has no section %q", path, section)
			}
		}
		_, entry, _ := strings.Cut(string(list), "("+filepath.Base(path)+")")
		entry, _, _ = strings.Cut(entry, "\n")
		successors := regexp.MustCompile(`(?s)^#[^\n]+\n\n\*Replaced(?: in part)? by (.*?):`).FindStringSubmatch(string(text))
		if marked := strings.HasPrefix(entry, " (replaced"); marked != (successors != nil) {
			t.Errorf("%s and docs/decisions/README.md do not agree whether it was replaced", path)
		}
		if successors != nil {
			links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(successors[1], -1)
			for _, link := range links {
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), link[1])); err != nil {
					t.Error(err)
				}
			}
			if len(links) == 0 {
				t.Errorf("%s names no successor", path)
			}
		}
		for _, c := range command.FindAllStringSubmatch(string(text), -1) {
			for name := range strings.SplitSeq(c[2], "|") {
				if !anyContains(exists[filepath.Base(c[1])], name) {
					t.Errorf("%s runs %s in %s, which does not exist", path, name, c[1])
				}
			}
		}
	}
}

func anyContains(tests map[string]bool, part string) bool {
	for name := range tests {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurity_NamesItsTests: every threat of docs/security.md has a cure, and a test that exists in the package that the
// page names.
func TestSecurity_NamesItsTests(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := testsByFolder(t)
	named := regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	threats := 0
	_, threatsAndMore, _ := strings.Cut(string(page), "\n## Threats\n")
	section, _, _ := strings.Cut(threatsAndMore, "\n## ")
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| threat |") {
			continue
		}
		threats++
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 3 {
			t.Errorf("%d cells instead of threat, cure and tests: %s", len(cells), line)
			continue
		}
		tests := named.FindAllStringSubmatch(cells[2], -1)
		if len(tests) == 0 && cells[2] != "`make vuln`" {
			t.Errorf("a threat without a test: %s", cells[0])
		}
		for _, n := range tests {
			if !exists[n[1]][n[2]] {
				t.Errorf("docs/security.md names %s.%s, which does not exist", n[1], n[2])
			}
		}
	}
	if threats < 25 {
		t.Errorf("it has %d threats only", threats)
	}
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)

// testsByFolder maps the last part of each folder to its tests, fuzz tests and benchmarks.
func testsByFolder(t *testing.T) map[string]map[string]bool {
	t.Helper()
	return namesByFolder(t, testFunc)
}

// namesByFolder maps the last part of each folder to the names that a pattern finds in its tests.
func namesByFolder(t *testing.T, pattern *regexp.Regexp) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".local", "bin"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder := filepath.Base(filepath.Dir(path))
		if found[folder] == nil {
			found[folder] = map[string]bool{}
		}
		for _, match := range pattern.FindAllSubmatch(text, -1) {
			found[folder][string(match[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

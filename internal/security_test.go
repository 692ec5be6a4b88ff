package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsNameTheirTests: no threat without a cure, and a test that exists
// in the package that docs/security.md names.
func TestThreatsNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)\\w+)`")
	threats := 0
	for line := range strings.Lines(string(page)) {
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
			if !has(t, n[1], n[2]) {
				t.Errorf("docs/security.md names %s.%s, which does not exist", n[1], n[2])
			}
		}
	}
	if threats < 25 {
		t.Errorf("it has %d threats only", threats)
	}
}

// has reports whether a package has a test.
func has(t *testing.T, folder, test string) bool {
	t.Helper()
	for _, pattern := range []string{folder + "/*_test.go", "../" + folder + "/*_test.go", "../cmd/" + folder + "/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nfunc "+test+"(") {
				return true
			}
		}
	}
	return false
}

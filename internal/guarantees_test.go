package internal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuarantees_NameTheirTests: every claim of docs/guarantees.md names a test, and every test that the page names exists.
func TestGuarantees_NameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, tests := range testsByFolder(t) {
		for name := range tests {
			exists[name] = true
		}
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(page), -1)
	for _, n := range named {
		if !exists[n[1]] {
			t.Errorf("docs/guarantees.md names %s, which does not exist", n[1])
		}
	}
	if len(named) < 40 {
		t.Errorf("it names %d tests only", len(named))
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") && !strings.HasPrefix(line, "| fault |") &&
			!strings.Contains(line, "`Test") && !strings.Contains(line, "`make chaos`") {
			t.Errorf("a claim without a test: %s", line)
		}
	}
}

package internal_test

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

// skipping is a test that a short run leaves out.
var skipping = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\t(?:allOnly\(t\)|if testing\.Short\(\) \{\n\t\tt\.Skip)`)

// TestGuarantees_NameTheirTests: every claim of docs/guarantees.md names a test, and every test that the page names exists, and runs in
// `make test`.
func TestGuarantees_NameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	exists, skips := map[string]bool{}, map[string]bool{}
	for _, tests := range testsByFolder(t) {
		maps.Copy(exists, tests)
	}
	for _, tests := range namesByFolder(t, skipping) {
		maps.Copy(skips, tests)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(page), -1)
	for _, n := range named {
		if !exists[n[1]] {
			t.Errorf("docs/guarantees.md names %s, which does not exist", n[1])
		}
		if skips[n[1]] {
			t.Errorf("docs/guarantees.md names %s, which `make test` leaves out", n[1])
		}
	}
	if len(skips) == 0 {
		t.Error("no test is left out of `make test`: this test does not find them")
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

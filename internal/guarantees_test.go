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

// TestGuarantees_NameTheirTests: every claim of docs/guarantees.md names a test that `make test` runs, or that `make chaos` is its test,
// and every test that the page names exists. Those behind "in `make test-all`:" are what `make test` leaves out.
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
	name := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	named := 0
	for line := range strings.Lines(string(page)) {
		short, long, _ := strings.Cut(line, "in `make test-all`:")
		for part, left := range map[string]bool{short: false, long: true} {
			for _, n := range name.FindAllStringSubmatch(part, -1) {
				named++
				if !exists[n[1]] {
					t.Errorf("docs/guarantees.md names %s, which does not exist", n[1])
				}
				if skips[n[1]] != left {
					t.Errorf("docs/guarantees.md names %s; `make test` leaves it out: %t", n[1], skips[n[1]])
				}
			}
		}
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") && !strings.HasPrefix(line, "| fault |") &&
			!name.MatchString(short) && !strings.Contains(line, "`make chaos`") {
			t.Errorf("a claim without a test: %s", line)
		}
	}
	if len(skips) == 0 {
		t.Error("no test is left out of `make test`: this test does not find them")
	}
	if named < 40 {
		t.Errorf("it names %d tests only", named)
	}
}

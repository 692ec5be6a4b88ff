package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesNameTheirTests: no claim without its test.
func TestGuaranteesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, pattern := range []string{"*/*_test.go", "../e2e/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllSubmatch(page, -1)
	for _, n := range named {
		if !strings.Contains(tests.String(), "\nfunc "+string(n[1])+"(t *testing.T)") {
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

package internal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestContributing_Walks: CONTRIBUTING.md has the five walks, and every file that one names exists, except the new file
// that it tells to write.
func TestContributing_Walks(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("`((?:[a-zA-Z_]+/)*[a-zA-Z_]+\\.[a-z]+)`")
	for _, walk := range []string{"Add a channel", "Add a rule", "Add an endpoint", "Add a field", "Add a setting"} {
		_, rest, found := strings.Cut(string(page), "\n## "+walk+"\n")
		if !found {
			t.Errorf("the walk %q is missing", walk)
			continue
		}
		section, _, _ := strings.Cut(rest, "\n## ")
		files := file.FindAllStringSubmatch(section, -1)
		if len(files) < 5 {
			t.Errorf("%s: it names %d files only", walk, len(files))
		}
		for _, f := range files {
			if f[1] == "internal/channel/texter.go" {
				continue
			}
			opened, err := os.Open("../" + f[1])
			if err != nil {
				t.Errorf("%s: %v", walk, err)
				continue
			}
			_ = opened.Close()
		}
	}
}

// TestContributing_Field: a field of a push that is shown everywhere costs six files. An existing one is in each of them.
func TestContributing_Field(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## Add a field\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	files := regexp.MustCompile("(?m)^[0-9]+\\. `([^`]+)`").FindAllStringSubmatch(section, -1)
	if len(files) != 6 {
		t.Errorf("the walk has %d steps, want 6", len(files))
	}
	for _, f := range files {
		if text, err := os.ReadFile("../" + f[1]); err != nil || !strings.Contains(strings.ToLower(string(text)), "category") {
			t.Errorf("%s does not have the field category, %v", f[1], err)
		}
	}
}

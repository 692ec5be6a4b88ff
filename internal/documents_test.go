package internal_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxCell is the maximum length of a cell in a table of a document, in characters. Longer text belongs below the table.
const maxCell = 300

// TestDocs_Cells rejects cells of tables that are too long to read.
func TestDocs_Cells(t *testing.T) {
	bar := regexp.MustCompile(`\\\|`)
	for document, text := range documents(t) {
		for n, line := range strings.Split(outsideFences(text), "\n") {
			if !strings.HasPrefix(strings.TrimSpace(line), "|") {
				continue
			}
			for cell := range strings.SplitSeq(bar.ReplaceAllString(line, "/"), "|") {
				if length := utf8.RuneCountInString(strings.TrimSpace(cell)); length > maxCell {
					t.Errorf("%s:%d: a cell has %d characters, more than %d: %.60s…", document, n+1, length, maxCell, strings.TrimSpace(cell))
				}
			}
		}
	}
}

// TestDocs_Links: every link between documents leads to a file of the repository, and to a heading that exists.
func TestDocs_Links(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	all, links := documents(t), 0
	for document, text := range all {
		for n, line := range strings.Split(outsideFences(text), "\n") {
			for _, found := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(found[1], "://") {
					continue
				}
				links++
				file, heading, _ := strings.Cut(found[1], "#")
				to := document
				if file != "" {
					to = path.Join(path.Dir(document), file)
				}
				if _, err := os.Stat("../" + to); err != nil {
					t.Errorf("%s:%d: %v", document, n+1, err)
				}
				if heading != "" && !hasHeading(all[to], heading) {
					t.Errorf("%s:%d: %s has no heading for #%s", document, n+1, to, heading)
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("the documents have %d links", links)
	}
}

// TestDocs_Index: docs/README.md links to every document of its folder.
func TestDocs_Index(t *testing.T) {
	all := documents(t)
	for document := range all {
		in, isDoc := strings.CutPrefix(document, "docs/")
		if isDoc && in != "README.md" && !strings.HasPrefix(in, "decisions/0") && !strings.Contains(all["docs/README.md"], "]("+in+")") {
			t.Errorf("docs/README.md does not link to %s", in)
		}
	}
}

// documents maps the path of each Markdown file of the repository to its text.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".local", "bin", "testdata", "vendor"}, d.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(name) == ".md" {
			text, err := os.ReadFile(name)
			all[filepath.ToSlash(name)[len("../"):]] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outsideFences blanks the lines of code blocks, and keeps the number of lines.
func outsideFences(text string) string {
	lines, inside := strings.Split(text, "\n"), false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			inside = !inside
		}
		if fence || inside {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// hasHeading reports whether a document has a heading with this anchor, as GitHub derives it: lower case, punctuation removed, and hyphens
// for spaces.
func hasHeading(text, anchor string) bool {
	removed := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for line := range strings.Lines(outsideFences(text)) {
		title := strings.TrimLeft(line, "#")
		if title == line {
			continue
		}
		title = removed.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		if strings.ReplaceAll(title, " ", "-") == anchor {
			return true
		}
	}
	return false
}

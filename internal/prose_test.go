package internal_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// proseBudget is the maximum number of hard shapes in 1,000 lines, by kind of text. Lower it, never raise it.
var proseBudget = map[string]float64{"code, documents and pages": 15, "tests": 15}

// proseShape is a pattern of sentences that must be read twice.
type proseShape struct {
	name    string
	pattern *regexp.Regexp
	unless  *regexp.Regexp // matches the text after the pattern in harmless cases; nil: there are none
	instead string
}

// proseShapes lists the patterns, with a remedy each. They match words without their sense: a few matches read well.
var proseShapes = func() (all []proseShape) {
	add := func(name, pattern, unless, instead string) {
		s := proseShape{name: name, pattern: regexp.MustCompile(pattern), instead: instead}
		if unless != "" {
			s.unless = regexp.MustCompile(`^` + unless)
		}
		all = append(all, s)
	}
	verb := `(?:\w+(?:ed|en|nt|ld|pt|id)|be|wait|go|come|run|do|make|take|look|see|say|tell|leave|stand|stay|end|begin|expire)`
	thing := `(?:it|them|those|all|each|others|what \w+|(?:the|a|its|their|every) \w+)`
	add("pronoun for a noun", `\b(?:that|those) (?:of|to|in|for|with)\b`, ` (?:it|this|that)\b`, "repeat the noun")
	add("no verb of action", `^\S+ (?:is|are) (?:that of|what|how|when|where|whether|who|those)\b`, "", "returns, reads, reports; or name the thing")
	add("speaking things", `\b(?:[Ss]ay|[Ss]ays|[Ss]aying|[Tt]ell|[Tt]ells|[Tt]old) (?:of|what|why|who|whom|how|when|where|whether|which|that it)\b`, "",
		"returns, lists, logs, reports, explains")
	add("told things", `\b(?:is|are|was|were|be|been|being) told\b`, "", "receives, is notified")
	add("fate", `\b[Ww]hat (?:became|becomes|will become|is|was|has become) (?:of|with)\b`, "", "outcome, result, state")
	add("unnamed amount", `\b[Ss]o (?:many|much|long|often|few|far)\b`, ` as\b`, "name the number or the parameter")
	add("relative clause with a preposition", `\b(?:of|in|to|for|from|by|with|at|under|about|on|behind|beside) (?:whom|which|whose)\b`, "", "two sentences")
	add("let and have", `\b(?:[Hh]as|[Hh]ave|[Hh]ad|[Hh]aving|[Ll]et|[Ll]ets) `+thing+` `+verb+`\b`, "", "the plain verb")
	add("clause as the subject", `^(?:What|Who|Whoever|Whatever|Whichever)\b`, `.*\?`, "name the subject")
	add("looking", `\b(?:a look|look|looks|looked|looking) (?:at|into|for)\b`, "", "reads, queries, checks, finds")
	add("old adverb", `\b(?:anew|thereof|therein|whereof|hitherto|for good|at that|as well as that|beforehand|hold good)\b`, "", "again, permanently")
	add("cannot", `\b[Cc]an not\b`, "", "cannot")
	add("permission", `\b(?:as it may|that it may|which it may|than it may|more than (?:it|they|one) may)\b`, "", "the maximum, allowed")
	add("no person", `\b(?:[Nn]o|[Ss]ome|[Ee]very|[Aa]ny)body\b`, "", "no recipient, another user, all callers")
	return all
}()

// count returns how often a text has the shape.
func (s *proseShape) count(text string) (n int) {
	for _, at := range s.pattern.FindAllStringIndex(text, -1) {
		if s.unless == nil || !s.unless.MatchString(text[at[1]:]) {
			n++
		}
	}
	return n
}

// TestProse checks that the text of the project stays readable: comments, messages, documents and pages have few of the hard shapes.
func TestProse(t *testing.T) {
	lines, places := map[string]int{}, map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "vendor" || name == "testdata" || name == "node_modules" || name == "bin" || len(name) > 2 && name[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || generatedProse(path):
			return nil
		}
		kind := "code, documents and pages"
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.ToSlash(path), "../e2e/") {
			kind = "tests"
		}
		for _, line := range proseOf(t, path) {
			lines[kind]++
			for i := range proseShapes {
				s := &proseShapes[i]
				for range s.count(line.text) {
					place := fmt.Sprintf("%s:%d: %s (%s; write: %s)", strings.TrimPrefix(path, "../"), line.number, line.text, s.name, s.instead)
					places[kind] = append(places[kind], place)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, budget := range proseBudget {
		if lines[kind] < 1000 {
			t.Fatalf("%s: only %d lines were read", kind, lines[kind])
		}
		measure := 1000 * float64(len(places[kind])) / float64(lines[kind])
		t.Logf("%s: %.1f hard shapes in 1,000 lines (%d of %d)", kind, measure, len(places[kind]), lines[kind])
		if measure > budget {
			t.Errorf("%s: %.1f hard shapes in 1,000 lines, allowed are %g; rewrite some of these sentences:\n%s", kind, measure, budget, strings.Join(places[kind], "\n"))
		}
	}
}

// TestProse_Shapes checks the patterns by examples.
func TestProse_Shapes(t *testing.T) {
	for text, want := range map[string]int{
		"max returns the larger of two numbers.":       0,
		"The store is that of the first one.":          1,
		"It returns that of it.":                       0,
		"end is when the lease expires.":               1,
		"The page says why, and the caller is told.":   2,
		"The push lists what became of it.":            1,
		"It waits so long, but no longer.":             1,
		"It runs so long as there is work.":            0,
		"The lane in which the push lies.":             1,
		"The lock has those wait, and lets it begin.":  2,
		"Who comes first is served.":                   1,
		"Who comes first?":                             0,
		"A worker looks at a lane anew.":               2,
		"It can not wait; nobody has more than it may": 3,
	} {
		got := 0
		for i := range proseShapes {
			got += proseShapes[i].count(text)
		}
		if got != want {
			t.Errorf("%q has %d hard shapes, want %d", text, got, want)
		}
	}
}

// generatedProse reports whether a file is generated, or a record of the past.
func generatedProse(path string) bool {
	switch filepath.ToSlash(path) {
	case "../client/types.go", "../CHANGELOG.md", "../docs/benchmarks.md":
		return true
	}
	return false
}

// proseLine is a line of text that a person reads.
type proseLine struct {
	number int
	text   string
}

// proseOf returns the text in a file: comments and messages of code, all of a document, and a page without its tags.
func proseOf(t *testing.T, path string) (all []proseLine) {
	t.Helper()
	comment := map[string]string{".lua": "--", ".sql": "--", ".js": "//", ".css": "/*"}[filepath.Ext(path)]
	ext := filepath.Ext(path)
	if comment == "" && ext != ".go" && ext != ".md" && ext != ".html" && ext != ".tmpl" {
		return nil
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if ext == ".go" {
		return goProse(path, source)
	}
	fenced := false
	for i, text := range strings.Split(string(source), "\n") {
		switch {
		case ext == ".md" && strings.HasPrefix(strings.TrimSpace(text), "```"):
			fenced = !fenced
			continue
		case ext == ".md" && fenced:
			continue
		case ext == ".md":
			text = strings.Trim(text, " |*>-#0123456789.")
		case comment == "":
			text = tags.ReplaceAllString(text, " ")
		default:
			_, text, _ = strings.Cut(text, comment)
		}
		all = appendProse(all, i+1, text)
	}
	return all
}

// tags are the elements and the actions of a page.
var tags = regexp.MustCompile(`<[^>]*>|\{\{[^}]*\}\}`)

// goProse returns the lines of comments, and texts of at least three words on one line.
func goProse(path string, source []byte) (all []proseLine) {
	set := token.NewFileSet()
	file := set.AddFile(path, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		line := file.Line(at)
		switch kind {
		case token.EOF:
			return all
		case token.COMMENT:
			for i, part := range strings.Split(text, "\n") {
				if part = strings.TrimPrefix(part, "//"); !strings.HasPrefix(part, "go:") && !strings.HasPrefix(part, "nolint") {
					all = appendProse(all, line+i, part)
				}
			}
		case token.STRING:
			if value, err := strconv.Unquote(text); err == nil && !strings.Contains(text, "\n") && strings.Count(value, " ") >= 2 {
				all = appendProse(all, line, value)
			}
		}
	}
}

// appendProse appends a line, unless it is too short to matter.
func appendProse(all []proseLine, number int, text string) []proseLine {
	if text = strings.TrimSpace(text); len(text) < 4 {
		return all
	}
	return append(all, proseLine{number, text})
}

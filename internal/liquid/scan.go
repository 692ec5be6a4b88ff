package liquid

import (
	"fmt"
	"regexp"
	"strings"
)

// templated reports whether a text contains template syntax.
func templated(text string) bool { return strings.Contains(text, "{{") || strings.Contains(text, "{%") }

// kind is the kind of a token.
type kind int

const (
	textToken   kind = iota // text that stays as it is, or is trimmed
	rawToken                // text that stays as it is
	outputToken             // {{ args }}
	tagToken                // {% name args %}
)

// token is a piece of a template.
type token struct {
	kind kind
	text string // of text
	name string // of a tag
	args string // of a tag or an output
	line int    // at which the arguments begin; the first line is 1
}

// fault returns an error with the line of a token.
func (t token) fault(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{t.line}, args...)...)
}

// spaces are the characters that a dash in a mark trims, and that separate words.
const spaces = " \t\n\v\f\r\x00"

var (
	tagName = regexp.MustCompile(`^\s*(#|\w+)`)

	// The ends of texts that are not parsed.
	endRaw = regexp.MustCompile(`\{%-?\s*endraw\s*(-?)%\}`)
	endDoc = regexp.MustCompile(`\{%-?\s*enddoc\s*(-?)%\}`)
	anyDoc = regexp.MustCompile(`\{%-?\s*doc\s*-?%\}`)
)

// scanner divides a template into tokens.
type scanner struct {
	rest   string
	line   int
	trim   bool // trim the start of the next text
	tokens []token
}

// scan returns the tokens of a template. Comments are left out. It reads every byte a constant number of times.
func scan(text string) ([]token, error) {
	s := scanner{rest: text, line: 1}
	for s.rest != "" {
		at := nextMark(s.rest)
		if at < 0 {
			s.text(s.rest, false)
			break
		}
		before, mark := s.rest[:at], s.rest[at:at+2]
		inner, dash := s.rest[at+2:], strings.HasPrefix(s.rest[at+2:], "-")
		s.text(before, dash)
		s.line += strings.Count(before, "\n")
		if err := s.marked(mark, strings.TrimPrefix(inner, "-")); err != nil {
			return nil, err
		}
	}
	return s.tokens, nil
}

// nextMark returns the index of the next {{ or {% ; -1: none.
func nextMark(text string) int {
	for at := 0; ; {
		n := strings.IndexByte(text[at:], '{')
		if at += n; n < 0 || at+1 == len(text) {
			return -1
		}
		if c := text[at+1]; c == '{' || c == '%' {
			return at
		}
		at++
	}
}

// text adds a text, trimmed by the marks around it.
func (s *scanner) text(text string, trimRight bool) {
	if s.trim {
		text = strings.TrimLeft(text, spaces)
	}
	if trimRight {
		text = strings.TrimRight(text, spaces)
	}
	if s.trim = false; text != "" {
		s.tokens = append(s.tokens, token{kind: textToken, text: text})
	}
}

// marked adds the token between two marks, and the text of a raw.
func (s *scanner) marked(mark, inner string) error {
	end := map[string]string{"{{": "}}", "{%": "%}"}[mark]
	n := strings.Index(inner, end)
	if n < 0 {
		return fmt.Errorf("line %d: %s is not closed by %s", s.line, mark, end)
	}
	body, line := inner[:n], s.line
	s.rest = inner[n+len(end):]
	s.line += strings.Count(body, "\n")
	body, s.trim = strings.CutSuffix(body, "-")
	if mark == "{{" {
		if strings.Trim(body, spaces) == "" {
			return fmt.Errorf("line %d: {{ }} is not Liquid", line)
		}
		s.tokens = append(s.tokens, token{kind: outputToken, args: body, line: line})
		return nil
	}
	t, err := tagOf(body, line)
	if err != nil {
		return err
	}
	switch t.name {
	case "#":
		return comment(t)
	case "raw":
		return s.raw(t)
	case "doc":
		return s.doc(t)
	case "comment":
		return s.comment(t)
	}
	s.tokens = append(s.tokens, t)
	return nil
}

// tagOf returns the tag between two marks.
func tagOf(body string, line int) (token, error) {
	at := tagName.FindStringSubmatchIndex(body)
	if at == nil {
		return token{}, fmt.Errorf("line %d: %s is not Liquid", line, quoted("{% "+body+" %}"))
	}
	line += strings.Count(body[:at[2]], "\n")
	return token{kind: tagToken, name: body[at[2]:at[3]], args: body[at[3]:], line: line}, nil
}

// comment checks that each line of a {% # … %} is a comment.
func comment(t token) error {
	for i, line := range strings.Split(t.args, "\n") {
		if text := strings.TrimLeft(line, spaces); i > 0 && text != "" && text[0] != '#' {
			t.line += i
			return t.fault("each line of a comment begins with #")
		}
	}
	return nil
}

// raw adds the text up to endraw.
func (s *scanner) raw(t token) error {
	text, err := s.until(t, endRaw)
	if err == nil && text != "" {
		s.tokens = append(s.tokens, token{kind: rawToken, text: text})
	}
	return err
}

// doc skips the text up to enddoc.
func (s *scanner) doc(t token) error {
	if strings.Trim(t.args, spaces) != "" {
		return t.fault("doc takes nothing")
	}
	text, err := s.until(t, endDoc)
	if err == nil && anyDoc.MatchString(text) {
		err = t.fault("a doc must not be in a doc")
	}
	return err
}

// until moves behind the end of a text that is not parsed, and returns the text.
func (s *scanner) until(t token, end *regexp.Regexp) (string, error) {
	at := end.FindStringSubmatchIndex(s.rest)
	if at == nil {
		return "", t.fault("%s has no end%s", t.name, t.name)
	}
	text := s.rest[:at[0]]
	s.line += strings.Count(s.rest[:at[1]], "\n")
	s.trim = at[2] < at[3]
	s.rest = s.rest[at[1]:]
	return text, nil
}

// comment moves behind the endcomment of a comment, which may contain comments and raws.
func (s *scanner) comment(t token) error {
	for depth := 1; depth > 0; {
		at := strings.Index(s.rest, "{%")
		n := -1
		if at >= 0 {
			n = strings.Index(s.rest[at:], "%}")
		}
		if n < 0 {
			return t.fault("comment has no endcomment")
		}
		body := strings.TrimPrefix(s.rest[at+2:at+max(n, 2)], "-")
		s.line += strings.Count(s.rest[:at+n+2], "\n")
		s.rest = s.rest[at+n+2:]
		body, s.trim = strings.CutSuffix(body, "-")
		inner, err := tagOf(body, s.line)
		if err != nil {
			continue
		}
		switch inner.name {
		case "comment":
			depth++
		case "endcomment":
			depth--
		case "raw":
			if _, err := s.until(inner, endRaw); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines returns the tags of a {% liquid … %}, one per line.
func lines(t token) ([]token, error) {
	var all []token
	comments := 0
	for i, line := range strings.Split(t.args, "\n") {
		if line = strings.Trim(line, spaces); line == "" {
			continue
		}
		one, err := tagOf(line, t.line+i)
		switch {
		case comments > 0:
			comments += map[string]int{"comment": 1, "endcomment": -1}[one.name]
		case err != nil:
			return nil, err
		case one.name == "comment":
			comments++
		case one.name == "raw" || one.name == "doc":
			return nil, one.fault("%s must stand in marks of its own", one.name)
		case one.name != "#":
			all = append(all, one)
		}
	}
	if comments > 0 {
		return nil, t.fault("comment has no endcomment")
	}
	return all, nil
}

// quoted returns a piece of a template for an error.
func quoted(text string) string {
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return strings.Join(strings.Fields(text), " ")
}

package liquid

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// templated reports whether a text is more than itself.
func templated(text string) bool { return strings.Contains(text, "{{") || strings.Contains(text, "{%") }

// A tag is a word with arguments, and an output has an expression, in one line.
var (
	tagShape    = regexp.MustCompile(`^\{%-?\s*(\w+)(?:\s+(?s:.*?))?\s*-?%\}$`)
	outputShape = regexp.MustCompile(`^\{\{-?\s*([^\s-].*?|-[^}\s].*?)\s*-?\}\}$`)
)

// checkMarks finds marks that are not closed, and what is between them and has not their form: the parser takes all that for text, and
// looks for each of their ends through the whole template. In raw texts and comments, marks are closed, too.
func checkMarks(text string) error {
	for rest := text; ; {
		at := strings.IndexByte(rest, '{')
		if at < 0 || at+1 == len(rest) {
			return nil
		}
		rest = rest[at:]
		mark, end, shape := rest[:2], "}}", outputShape
		if mark == "{%" {
			end, shape = "%}", tagShape
		} else if mark != "{{" {
			rest = rest[1:]
			continue
		}
		n := strings.Index(rest[2:], end)
		if n < 0 {
			return fmt.Errorf("line %d: %s is not closed by %s", 1+strings.Count(text[:len(text)-len(rest)], "\n"), mark, end)
		}
		whole := rest[:2+n+len(end)]
		found := shape.FindStringSubmatch(whole)
		if found == nil {
			return fmt.Errorf("line %d: %s is not Liquid", 1+strings.Count(text[:len(text)-len(rest)], "\n"), quoted(whole))
		}
		rest = rest[len(whole):]
		if mark == "{%" && (found[1] == "raw" || found[1] == "comment") {
			close := regexp.MustCompile(`\{%-?\s*end` + found[1] + `\s*-?%\}`).FindStringIndex(rest)
			if close == nil {
				return errors.New(found[1] + " is not ended by end" + found[1])
			}
			if err := checkMarks(rest[:close[0]]); err != nil {
				return fmt.Errorf("in %s: %w", found[1], err)
			}
			rest = rest[close[1]:]
		}
	}
}

// quoted is a piece of a template in a fault.
func quoted(text string) string {
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return strings.Join(strings.Fields(text), " ")
}

// word is a word of an expression.
type word struct {
	text       string
	start, end int
	filter     bool // it names one
}

var wordShape = regexp.MustCompile(`\.\.|"[^"]*"|'[^']*'|\.?[A-Za-z_][A-Za-z0-9_-]*\??:?|[|()\[\]]`)

// words are those of an expression that may be names: no texts, and no properties.
func words(expression string) (all []word) {
	filter := false
	for _, at := range wordShape.FindAllStringIndex(expression, -1) {
		text := expression[at[0]:at[1]]
		switch c := text[0]; {
		case c == '|':
			filter = true
			continue
		case c == '"' || c == '\'' || strings.ContainsRune("()[].", rune(c)):
		default:
			all = append(all, word{strings.TrimSuffix(text, ":"), at[0], at[1], filter})
		}
		filter = false
	}
	return all
}

// barePath is a variable, or a part of one. longPath begins an expression with a part of one.
var (
	barePath = regexp.MustCompile(`^\s*[A-Za-z_][A-Za-z0-9_-]*\??(?:\.[A-Za-z_][A-Za-z0-9_-]*\??|\[[^\[\]]*\])*\s*$`)
	longPath = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_-]*\??(?:\.[A-Za-z_][A-Za-z0-9_-]*\??|\[[^\[\]]*\])+)`)
	bareName = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_-]*\??)\s*$`)
)

// operands divides a condition at its outermost and and or.
func operands(condition string) (texts, joins []string) {
	depth, from := 0, 0
	for _, at := range wordShape.FindAllStringIndex(condition, -1) {
		switch text := condition[at[0]:at[1]]; text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case "and", "or":
			if depth == 0 {
				texts, joins, from = append(texts, condition[from:at[0]]), append(joins, text), at[1]
			}
		}
	}
	return append(texts, condition[from:]), joins
}

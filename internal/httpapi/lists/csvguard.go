package lists

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// apostrophe guards a cell of CSV against spreadsheets, which take a text that begins with =, +, -, or @ for a formula, and against
// readers of lists, which take spaces off its ends.
const apostrophe = "'"

// guarded is a cell of an export: with one apostrophe more before a text that begins with a sign of a formula or white space, and one more
// behind a text that ends with white space. Apostrophes that stand there already do not count as its beginning or end, so that
// unguarded always finds the text again.
func guarded(text string) string {
	if guardable(strings.TrimLeft(text, apostrophe)) {
		text = apostrophe + text
	}
	if spaceEnds(strings.TrimRight(text, apostrophe)) {
		text += apostrophe
	}
	return text
}

// unguarded is the text of a cell that was written by guarded, or by people: without spaces around it, and without the guard.
func unguarded(cell string) string {
	text := strings.TrimSpace(cell)
	if rest, ok := strings.CutPrefix(text, apostrophe); ok && guardable(strings.TrimLeft(rest, apostrophe)) {
		text = rest
	}
	if rest, ok := strings.CutSuffix(text, apostrophe); ok && spaceEnds(strings.TrimRight(rest, apostrophe)) {
		text = rest
	}
	return text
}

// guardable reports whether a text begins with a sign of a formula, or with white space.
func guardable(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && (strings.ContainsRune("=+-@", first) || unicode.IsSpace(first))
}

// spaceEnds reports whether a text ends with white space.
func spaceEnds(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && unicode.IsSpace(last)
}

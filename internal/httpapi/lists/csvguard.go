package lists

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// apostrophe guards a cell of CSV against spreadsheets, which read a text that begins with =, +, - or @ as a formula, and against
// readers, which remove spaces at its ends.
const apostrophe = "'"

// guarded returns a cell of an export: with one more apostrophe before a text that begins with a sign of a formula or white space, and one more
// after a text that ends with white space. Apostrophes at the ends of the text are ignored in this test, so that
// unguarded always restores the text.
func guarded(text string) string {
	if guardable(strings.TrimLeft(text, apostrophe)) {
		text = apostrophe + text
	}
	if spaceEnds(strings.TrimRight(text, apostrophe)) {
		text += apostrophe
	}
	return text
}

// unguarded returns the text of a cell that was written by guarded or by people, without spaces around it and without the guard.
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

package quota

import (
	"strings"
	"unicode/utf8"
)

// Name returns the stored form of the name of a category, a channel or a rule: trimmed and in lower case. Marketing and
// marketing are one category, so that opting out of one opts out of the other. A name that is not UTF-8 stays
// unchanged.
func Name(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	return strings.ToLower(strings.Trim(s, " "))
}

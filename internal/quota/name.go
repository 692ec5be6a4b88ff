package quota

import (
	"strings"
	"unicode/utf8"
)

// Name is the name of a category, a channel or a rule as it is kept and compared: in lower case, without spaces around it. Marketing and
// marketing are one category: who wants nothing of the one is sent nothing of the other. What is not UTF-8 stays as it is.
func Name(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	return strings.ToLower(strings.Trim(s, " "))
}

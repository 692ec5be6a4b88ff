package user

import (
	"strings"
	"unicode/utf8"
)

// Mask shows of an address as much as tells two of one person apart: the first character of an e-mail address and its
// domain, or the last two characters of anything else.
func Mask(address string) string {
	const hidden = "•••"
	if local, domain, ok := strings.Cut(address, "@"); ok && local != "" {
		_, n := utf8.DecodeRuneInString(local)
		return local[:n] + hidden + "@" + domain
	}
	runes := []rune(address)
	if len(runes) < 6 {
		return strings.Repeat("•", min(len(runes), 3))
	}
	return hidden + string(runes[len(runes)-2:])
}

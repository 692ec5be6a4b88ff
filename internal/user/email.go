package user

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The maximum lengths of a user's address and name, in bytes.
const (
	MaxEmail = 254
	MaxName  = 100
)

// CleanEmail returns the stored form of a sign-in name: trimmed and in lower case. wrong is what is wrong with the
// name, or "".
func CleanEmail(text string) (email, wrong string) {
	email = strings.ToLower(strings.TrimSpace(text))
	local, domain, _ := strings.Cut(email, "@")
	switch {
	case email == "":
		return "", "must not be empty"
	case len(email) > MaxEmail:
		return "", "must have at most 254 bytes"
	case !utf8.ValidString(text), strings.ContainsFunc(email, func(c rune) bool { return !unicode.IsPrint(c) || unicode.IsSpace(c) }):
		return "", "must consist of printable characters, without spaces"
	case local == "" || domain == "" || strings.Contains(domain, "@"):
		return "", "must be an e-mail address, like ada@example.com"
	}
	return email, ""
}

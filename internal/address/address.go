// Package address reads and compares the addresses of recipients: what a person writes, and what a provider reports,
// become the same text. It has no rules of channels.
package address

import (
	"errors"
	"net/mail"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// The kinds of addresses, which are types of channels.
const (
	Email = "email"
	SMS   = "sms"
)

// Errors of [Parse]. None of them quotes the address.
var (
	ErrForm  = errors.New("is not an e-mail address")
	ErrLocal = errors.New("must have only ASCII characters before the @: mail servers do not reliably take others")
	ErrASCII = errors.New("must have a domain that can be written in its xn-- form")
	ErrName  = errors.New("must have a name without control characters, of at most 200 bytes")
)

const (
	maxAddress = 254 // bytes, RFC 5321, 4.5.3.1
	maxLocal   = 64
	maxName    = 200
)

// Parse reads one e-mail address, which may have a name: "Anna <anna@example.com>". It returns the domain in lower case and
// in its xn-- form, so that the address can go into an envelope: it has no comment, no quotation marks, and nothing that
// could end a line.
func Parse(s string) (mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil {
		return mail.Address{}, ErrForm
	}
	// The parser drops comments and quotation marks, and reads routes: the address must be there as it was read.
	if bare := strings.TrimSpace(s); a.Address != bare && !strings.HasSuffix(bare, "<"+a.Address+">") {
		return mail.Address{}, ErrForm
	}
	at := strings.LastIndexByte(a.Address, '@')
	local, domain := a.Address[:at], a.Address[at+1:]
	if !isPrintable(domain) || strings.Contains(strings.ToLower(domain), "xn--") {
		if domain, err = idna.Lookup.ToASCII(domain); err != nil {
			return mail.Address{}, ErrASCII
		}
	}
	switch a.Address = local + "@" + strings.ToLower(domain); {
	case !isPrintable(local):
		return mail.Address{}, ErrLocal
	case len(local) > maxLocal || !isBare(a.Address):
		return mail.Address{}, ErrForm
	case len(a.Name) > maxName || strings.ContainsFunc(a.Name, unicode.IsControl):
		return mail.Address{}, ErrName
	}
	return *a, nil
}

// isBare reports whether s is an address as in an envelope. The conversion of a domain may have made it another one.
func isBare(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxAddress && isPrintable(s)
}

// isPrintable reports whether s has only printable ASCII characters, and no space.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

var (
	e164       = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
	separators = strings.NewReplacer(" ", "", "\u00a0", "", "-", "", ".", "", "/", "")
)

// Normal returns the form of an address in which addresses of a kind are compared. For [Email] it is the bare address with
// the domain in lower case and in its xn-- form; the part before the @ stays as it is. For [SMS] it is the number in E.164
// form. An address of another kind, or of a wrong form, stays as it is.
func Normal(kind, address string) string {
	switch kind {
	case Email:
		if a, err := Parse(address); err == nil {
			return a.Address
		}
	case SMS:
		number := separators.Replace(address)
		if international, ok := strings.CutPrefix(number, "00"); ok {
			number = "+" + international
		}
		if e164.MatchString(number) {
			return number
		}
	}
	return address
}

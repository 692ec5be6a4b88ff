package channel

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
)

// headerText encodes text for a header so that a reader gets it back unchanged. It encodes text that is not ASCII (RFC
// 2047), and text that looks encoded, because a reader would decode it. Spaces at the ends, and two in a row, would not
// survive the folding of lines.
func headerText(s string) string {
	plain := !strings.Contains(s, "=?") && !strings.Contains(s, "  ") && s == strings.TrimSpace(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] <= '~'
	}
	if plain {
		return s
	}
	return encodedWords(s)
}

// encodedWords writes s as encoded words, so that lines can be folded between them: each word fits into a line beside
// the header's name. No character is split. Everything but letters and digits is encoded, so that the result can also
// be the name of an address.
func encodedWords(s string) string {
	const begin, end, most = "=?utf-8?q?", "?=", 60
	var words []string
	word := ""
	for _, r := range s {
		text := quoted(r)
		if len(begin)+len(word)+len(text)+len(end) > most {
			words, word = append(words, begin+word+end), ""
		}
		word += text
	}
	return strings.Join(append(words, begin+word+end), " ")
}

func quoted(r rune) string {
	switch {
	case r == ' ':
		return "_"
	case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z':
		return string(r)
	}
	return strings.ReplaceAll(fmt.Sprintf("=% X", string(r)), " ", "=")
}

// headerAddress formats an address, with its name if it has one.
func headerAddress(a *mail.Address) string {
	if name := headerText(a.Name); name != a.Name {
		return name + " " + (&mail.Address{Address: a.Address}).String()
	}
	return a.String()
}

// ownHeaders are the headers that the channel writes, or that mail servers write, in lower case. A name that ends in a
// dash stands for all names that begin so.
var ownHeaders = []string{
	"from", "sender", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version", "content-", "auto-submitted",
	"list-unsubscribe", "list-unsubscribe-post", "dkim-signature", "x-sendquota-",
	"return-path", "received", "received-spf", "authentication-results", "delivered-to", "resent-", "arc-", "apparently-to", "disposition-notification-to", "errors-to",
}

// isOwn reports whether a header must not come from a message.
func isOwn(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(ownHeaders, func(own string) bool {
		return name == own || strings.HasSuffix(own, "-") && strings.HasPrefix(name, own)
	})
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// headersIn reads the headers that a message adds, in the order of their names.
func headersIn(in message, bad *invalid.FieldErrors) (all []mailHeader) {
	given, ok := in.object("headers")
	switch {
	case !ok:
		bad.Add("message.headers", nil, "must be an object from names to strings")
		return nil
	case len(given) > maxHeaders:
		bad.Add("message.headers", nil, "must have at most %d headers, has %d", maxHeaders, len(given))
		return nil
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		lower := strings.ToLower(name)
		switch {
		case !headerName.MatchString(name) || len(name) > maxHeaderName:
			bad.Add("message.headers", shortened(name), "must have names of at most %d letters, digits, dashes and underscores", maxHeaderName)
			continue
		case isOwn(name):
			bad.Add("message.headers."+name, nil, "must not be given: the channel or a mail server writes it")
			continue
		case seen[lower]:
			bad.Add("message.headers."+name, nil, "must be given once: letter case makes no other header")
			continue
		}
		seen[lower] = true
		var value string
		if raw := given[name]; raw[0] != '"' || json.Unmarshal(raw, &value) != nil {
			bad.Add("message.headers."+name, nil, "must be a string")
		} else if wrong := headerFault(value); wrong != "" {
			bad.Add("message.headers."+name, nil, "%s", wrong)
		} else {
			all = append(all, mailHeader{name, value})
		}
	}
	return all
}

// headerFault returns what is wrong with the value of a header, or "".
func headerFault(value string) string {
	switch {
	case strings.TrimSpace(value) == "":
		return "must not be empty"
	case strings.ContainsFunc(value, unicode.IsControl):
		return "must be one line without control characters"
	case len(value) > maxHeaderValue:
		return "must have at most 900 bytes"
	}
	return ""
}

// shortened returns a name as the value of an error.
func shortened(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	for i := most; ; i-- {
		if utf8.RuneStart(name[i]) {
			return name[:i] + "…"
		}
	}
}

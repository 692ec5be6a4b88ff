package channel

import (
	"fmt"
	"net/mail"
	"strings"
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

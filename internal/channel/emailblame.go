package channel

import (
	"regexp"
	"strconv"
	"strings"
)

// mailBlames lists the 55x replies that blame the operator: what we may do, who we send as, or where we send from. They
// are retried, and do not concern the push. They are recognized by their enhanced status code (RFC 3463, its registry
// at the IANA, and the codes of Exchange Online), or by the words that mail servers use.
func mailBlames() []mailBlame {
	return []mailBlame{
		{codes: "5.1.7", text: "the sender's address is not valid"},
		{codes: "5.1.8", text: "the sender's domain is not valid"},
		{codes: "5.7.3", text: "the server wants a sign-in"},
		{codes: "5.7.8", text: "the credentials are not valid"},
		{codes: "5.7.9", text: "the sender is not authenticated as the server wants it"},
		{codes: "5.7.11 5.7.12 5.7.13 5.7.14", text: "the sign-in is not allowed"},
		{codes: "5.7.20-5.7.29", text: "DKIM, SPF, DMARC, the reverse DNS or the MX of the sender is not valid"},
		{codes: "5.7.54 5.7.64", text: "the server does not relay for us"},
		{codes: "5.7.57 5.7.60", text: "we may not send as this sender"},
		{codes: "5.7.501-5.7.503 5.7.506-5.7.515", text: "the server refuses the sender or its address"},
		{codes: "5.7.606-5.7.649", text: "the sender's IP address is blocked"},
		{codes: "5.7.700-5.7.750", text: "the sender's organization may not send"},

		{words: "relay access denied, relay denied, relaying denied, relaying disallowed, relaying is, relaying not, relay not, not relay, not allowed to relay, unable to relay, allowed rcpthosts", text: "the server does not relay for us"},
		{words: "blocklist, blacklist, block list, black list, blocked using, is listed, are listed, been listed, listed at, listed by, our rbl, an rbl, reputation of the sending, spamhaus, spamcop, barracudacentral, dnsbl", text: "the sender's IP address or domain is blocked"},
		{words: "send as, not allowed to send, not authorized to send, not permitted to send, not owned by user, is not verified, verified sender", text: "we may not send as this sender"},
		{words: "authentication required, authentication is required, must authenticate, not authenticated", text: "the server wants a sign-in"},
		{words: "spf, dkim, dmarc, reverse dns, reverse hostname, ptr record", text: "DKIM, SPF, DMARC or the reverse DNS of the sender is not valid"},
	}
}

// mailBlame is one kind of such replies. codes are enhanced status codes and ranges of them. words are searched in
// replies without such a code, or with one that ends in 0 or 5.7.1, which servers use for anything.
type mailBlame struct{ codes, words, text string }

// blames returns why a 55x reply blames the operator, or "".
func blames(code, text string) string {
	for _, b := range mailBlames() {
		if b.codes != "" && hasCode(b.codes, code) {
			return b.text
		}
		if b.words != "" && (code == "" || detail(code) == 0 || code == "5.7.1") && hasWords(b.words, text) {
			return b.text
		}
	}
	return ""
}

// hasCode reports whether a code is among codes and ranges of codes.
func hasCode(codes, code string) bool {
	for one := range strings.FieldsSeq(codes) {
		first, last, isRange := strings.Cut(one, "-")
		if one == code {
			return true
		}
		if isRange && class(first) == class(code) && detail(first) <= detail(code) && detail(code) <= detail(last) {
			return true
		}
	}
	return false
}

// class returns an enhanced status code without its last number, which is its detail.
func class(code string) string { return code[:strings.LastIndexByte(code, '.')+1] }

func detail(code string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(code, class(code)))
	return n
}

// addresses matches the parts of a reply whose words are not the server's: a recipient may be called so.
var addresses = regexp.MustCompile(`<[^>]*>|\S+@\S+`)

func hasWords(words, text string) bool {
	text = " " + strings.ToLower(strings.Join(strings.Fields(addresses.ReplaceAllString(text, " ")), " ")) + " "
	for word := range strings.SplitSeq(words, ", ") {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"unicode"

	"github.com/sendquota/sendquota/internal/address"
	"github.com/sendquota/sendquota/internal/invalid"
)

// The bounds of an e-mail. A header and a subject stay on one line of at most 998 bytes (RFC 5322, 2.1.1), even if they
// have no space to fold at.
const (
	maxSubject     = 900 // bytes
	maxHeaders     = 50
	maxHeaderName  = 64  // bytes
	maxHeaderValue = 900 // bytes, also in the form that is sent
	maxCopies      = 50  // addresses in cc and bcc together; servers take at least 100 in an envelope
	maxReplyTo     = 10
)

// mailMembers are the parts of a push that make an e-mail.
type mailMembers struct {
	to, from         mail.Address
	replyTo, cc, bcc []mail.Address
	subject          string
	body, html       string
	headers          []mailHeader
	attachments      []attachment
}

// mailHeader is a header that the caller adds.
type mailHeader struct{ name, value string }

// recipients returns the addresses of the envelope, without repetitions. The first one is the recipient of the push.
func (m *mailMembers) recipients() []string {
	var all []string
	for _, a := range slices.Concat([]mail.Address{m.to}, m.cc, m.bcc) {
		if !slices.Contains(all, a.Address) {
			all = append(all, a.Address)
		}
	}
	return all
}

// members reads the address and the message of a push, and returns everything that is wrong with them.
func (e *Email) members(to string, raw json.RawMessage) (m mailMembers, bad invalid.FieldErrors) {
	var err error
	if m.to, err = address.Parse(to); err != nil {
		bad = append(bad, wrongAddress(to, "one e-mail address, such as anna@example.com or Anna <anna@example.com>"+because(err)))
	}
	in := open(raw)
	m.subject, m.body, m.html = in.text("title"), in.text("body"), in.text("html")
	if in["html"] != nil && in["html"][0] != '"' {
		bad.Add("message.html", nil, "must be a string")
	} else if m.body == "" && m.html == "" {
		bad.Add("message.body", nil, "must be a non-empty string, unless message.html is one")
	}
	switch {
	case strings.ContainsFunc(m.subject, unicode.IsControl):
		bad.Add("message.title", nil, "must be one line, because it is the subject")
	case len(m.subject) > maxSubject:
		bad = append(bad, tooLong("message.title", maxSubject, len(m.subject), "bytes"))
	}
	m.from = e.sender(in, &bad)
	m.replyTo = addressesIn(in, "reply_to", maxReplyTo, &bad)
	if m.replyTo == nil && e.replyTo != nil {
		m.replyTo = []mail.Address{*e.replyTo}
	}
	m.cc, m.bcc = addressesIn(in, "cc", maxCopies, &bad), addressesIn(in, "bcc", maxCopies, &bad)
	if n := len(m.cc) + len(m.bcc); n > maxCopies && len(m.cc) <= maxCopies && len(m.bcc) <= maxCopies {
		bad.Add("message.bcc", nil, "must have at most %d addresses together with message.cc, has %d", maxCopies, n)
	}
	m.headers = headersIn(in, &bad)
	m.attachments = attachmentsIn(in, &bad)
	return m, bad
}

// because returns the reason of an error of an address that its form alone does not explain.
func because(err error) string {
	if errors.Is(err, address.ErrForm) {
		return ""
	}
	return "; it " + err.Error()
}

// given reports whether a member is there, and not null.
func (m message) given(name string) bool { return m[name] != nil && string(m[name]) != "null" }

// sender returns the address in the From header: the channel's, or one that the channel allows.
func (e *Email) sender(in message, bad *invalid.FieldErrors) mail.Address {
	if !in.given("from") {
		if e.from == nil {
			return mail.Address{}
		}
		return *e.from
	}
	text := in.text("from")
	a, err := address.Parse(text)
	if err != nil {
		bad.Add("message.from", valueOf(text), "must be one e-mail address that the channel allows in allowed_from%s", because(err))
		return a
	}
	for _, allowed := range e.senders() {
		if allowed.Address == a.Address {
			if a.Name == "" {
				a.Name = allowed.Name
			}
			return a
		}
	}
	bad.Add("message.from", text, "must be an address that the channel allows in allowed_from")
	return a
}

// senders returns the addresses that the channel may send as.
func (e *Email) senders() []mail.Address {
	if e.from == nil {
		return e.allowedFrom
	}
	return append([]mail.Address{*e.from}, e.allowedFrom...)
}

// valueOf returns a text as the value of an error; nil: there is none.
func valueOf(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// addressesIn reads a member that is one address or a list of addresses.
func addressesIn(in message, name string, most int, bad *invalid.FieldErrors) (all []mail.Address) {
	if !in.given(name) {
		return nil
	}
	field := "message." + name
	read := func(at string, raw json.RawMessage) {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			bad.Add(at, nil, "must be an e-mail address")
			return
		}
		a, err := address.Parse(text)
		if err != nil {
			bad.Add(at, valueOf(text), "must be one e-mail address, such as anna@example.com or Anna <anna@example.com>%s", because(err))
			return
		}
		all = append(all, a)
	}
	if in[name][0] != '[' {
		read(field, in[name])
		return all
	}
	var list []json.RawMessage
	_ = json.Unmarshal(in[name], &list) // it is valid: open has read it
	if len(list) > most {
		bad.Add(field, nil, "must have at most %d addresses, has %d", most, len(list))
		return nil
	}
	for i, one := range list {
		read(fmt.Sprintf("%s[%d]", field, i), one)
	}
	return all
}

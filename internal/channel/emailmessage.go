package channel

import (
	"bytes"
	"errors"
	"mime"
	"net/mail"
	"strings"

	"github.com/google/uuid"
	gomail "github.com/wneessen/go-mail"

	"github.com/sendquota/sendquota/internal/address"
	"github.com/sendquota/sendquota/internal/push"
)

// outgoing is an e-mail that is ready to be handed over.
type outgoing struct {
	from string   // of the envelope
	to   []string // of the envelope; the first is the recipient of the push, the others are copies
	text []byte
}

// compose writes a push as an e-mail. Its message id is the same on every attempt, so that a recipient that gets it
// twice can tell.
func (e *Email) compose(p push.Push, in mailMembers) (out outgoing, err error) {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	for _, h := range in.headers {
		m.SetGenHeader(gomail.Header(h.name), headerText(h.value))
	}
	m.SetGenHeader("From", headerAddress(&in.from))
	m.SetGenHeader("To", headerAddress(&in.to))
	for name, list := range map[string][]mail.Address{"Reply-To": in.replyTo, "Cc": in.cc} { // go-mail sorts headers
		if len(list) > 0 {
			m.SetGenHeader(gomail.Header(name), headerAddresses(list)...)
		}
	}
	if in.subject != "" {
		m.Subject(headerText(in.subject))
	}
	m.SetMessageIDWithValue(p.ID.String() + "@" + e.cfg.MessageIDDomain)
	m.SetDateWithValue(e.cfg.Now())
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	m.SetGenHeader("X-Sendquota-Push", p.ID.String())
	if p.Unsubscribe != "" { // RFC 8058
		m.SetGenHeader(gomail.HeaderListUnsubscribe, "<"+p.Unsubscribe+">")
		m.SetGenHeader(gomail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	switch {
	case in.html == "":
		m.SetBodyString(gomail.TypeTextPlain, in.body)
	case in.body == "":
		m.SetBodyString(gomail.TypeTextHTML, in.html)
	default:
		m.SetBodyString(gomail.TypeTextPlain, in.body)
		m.AddAlternativeString(gomail.TypeTextHTML, in.html)
	}
	for _, a := range in.attachments {
		m.AttachReadSeeker("", bytes.NewReader(a.content), a.described)
	}
	var buf bytes.Buffer
	if _, err = m.WriteTo(&buf); err != nil {
		return out, err
	}
	if !bytes.HasSuffix(buf.Bytes(), []byte("\r\n")) {
		buf.WriteString("\r\n") // as SMTP ends it, so that the signature covers what arrives
	}
	out = outgoing{from: e.envelopeSender(p, in.from), to: in.recipients(), text: buf.Bytes()}
	if e.dkim != nil {
		out.text, err = e.dkim.sign(out.text)
	}
	return out, err
}

// described sets the headers of the part with an attachment. The library would write a name that is not ASCII as an
// encoded word within quotation marks, which RFC 2047 forbids: this is the form of RFC 2231.
func (a attachment) described(f *gomail.File) {
	f.Header.Set("Content-Type", a.media)
	f.Header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.name}))
}

// envelopeSender returns the address that gets the reports about a mail: bounce_address with the id of the push, or else
// the sender.
func (e *Email) envelopeSender(p push.Push, from mail.Address) string {
	if e.cfg.BounceAddress == "" {
		return from.Address
	}
	return bouncesTo(e.cfg.BounceAddress, p.ID)
}

// bounceID stands for the id of a push in a bounce address.
const bounceID = "{id}"

// bouncesTo returns the bounce address of a push.
func bouncesTo(template string, id uuid.UUID) string {
	return strings.Replace(template, bounceID, id.String(), 1)
}

// bounceAddress returns the form of a bounce address in which its domain is in lower case and in its xn-- form, or why it is not
// one. It is an address without a name that has {id} once, before the @.
func bounceAddress(template string) (string, error) {
	at := strings.LastIndexByte(template, '@')
	if at < 0 || strings.Count(template, bounceID) != 1 || !strings.Contains(template[:at], bounceID) {
		return "", errors.New("must have {id} once, before the @, such as bounces+{id}@example.com")
	}
	filled := bouncesTo(template, uuid.Max)
	a, err := address.Parse(filled)
	if err != nil || a.Address[:strings.LastIndexByte(a.Address, '@')] != filled[:strings.LastIndexByte(filled, '@')] {
		return "", errors.New("must be an e-mail address without a name when {id} is an id of 36 characters, such as bounces+{id}@example.com")
	}
	return template[:at] + a.Address[strings.LastIndexByte(a.Address, '@'):], nil
}

// headerAddresses formats addresses for a header.
func headerAddresses(list []mail.Address) []string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = headerAddress(&list[i])
	}
	return texts
}
